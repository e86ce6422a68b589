"""The plates: one module a kind of stimulus, each behind `snellen.sight.plate.EyeTest`."""
