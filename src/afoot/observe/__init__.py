"""Telemetry of calls by OpenTelemetry, and estimates of how long calls still take."""
