"""What others are measured against: loops that are never made faster or slower."""
