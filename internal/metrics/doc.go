// Package metrics exports the numbers of a daemon to Prometheus, as roost-metrics(7)
// lists them.
//
// A daemon that has an address in the metrics block of its node file makes an Exporter.
// Its Registry has the families of that daemon alone, in the structs Schedd, Negotiator,
// Collector, Startd, Web and Accountant. Without an address the registry is nil. The
// struct then has nil handles, and all methods of nil handles do nothing, so that the
// daemons count without asking whether anybody listens.
//
// Two kinds of numbers exist. Counters and histograms are atomics: the daemon adds to
// them where things happen. Gauges come from the daemon's last snapshot, which the
// goroutine that owns its state puts into a Published. A read of the page takes no lock
// of that goroutine.
//
// The number of series of a daemon is bounded by what its registry declares. A label has
// a closed list of values, or at most so many with the rest summed as "other". No label
// is a job, a task, a user or a text of somebody else's.
//
// Naively each package would declare its metrics where it counts, in the global registry
// of the library. Then nobody knows what a daemon exports, or how many series it can
// have, before it has run for a month.
package metrics
