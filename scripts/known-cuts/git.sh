# Commits of git are announced.
#
#   git.sh init|commit [CORE.FSYNC]
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
[ -d r ] || git init -q r
[ "$1" = commit ] || exit 0
cd r || exit 1
git config gc.auto 0
[ -z "$2" ] || git config core.fsync "$2"
for n in $(seq 8); do
  echo "$n" > f
  git add f
  git commit -qm "$n" && echo "commit $n"
done
echo x > ../other && sync ../other
