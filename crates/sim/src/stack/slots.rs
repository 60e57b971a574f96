//! Values under way, by numbers that are used again.

/// Values by number.
pub(super) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Takes a value in. Gives its number.
    pub(super) fn insert(&mut self, value: T) -> usize {
        if let Some(number) = self.free.pop() {
            self.slots[number] = Some(value);
            return number;
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<T> {
        let value = self.slots.get_mut(number)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.slots.get(number)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.slots.get_mut(number)?.as_mut()
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
