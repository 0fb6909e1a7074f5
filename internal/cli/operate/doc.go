// Package operate has roost diagnose, which measures the daemons of a node while they
// work and says what makes them slow.
//
// Measuring (measure.go, process_use.go, disk_latency.go, daemon_metrics.go) and judging
// (findings.go) are apart, so that the limits are tested without a slow machine.
package operate
