"""Several gateways and workers as one, on Redis or Valkey (D1). Nothing imports this without `[cluster]`."""
