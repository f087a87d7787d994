"""What every log, store and channel must do, as test classes to subclass."""
