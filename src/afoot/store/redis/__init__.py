"""The journal of a cluster, in Redis or Valkey. Nothing else of the store imports the client library."""
