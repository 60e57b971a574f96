//! Reference models, closed forms and the crash driver (not published).
