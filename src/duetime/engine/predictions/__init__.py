"""How long deliveries take: statistics, the model, and estimates from them."""
