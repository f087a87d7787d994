"""Shows what the engine does and why: metrics, health, forecast, replay."""
