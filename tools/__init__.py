"""What looks after this repository itself: the lanes of its tests, the sizes and habits of its code."""
