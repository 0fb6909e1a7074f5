// Package accounting says what the accounting of a pool records, and computes with it:
// jobs and attempts of every schedd, their use of resources over time, and the machines.
//
// The records are copies. Each schedd owns its jobs and sends what happens to them as a
// numbered feed; the accountant stores them with the number of the last one in the same
// transaction. A record that comes again changes nothing, because every record has a
// natural key. If the store is lost it is rebuilt from the schedds' histories.
//
// All amounts are integers: milliseconds, milli-CPUs, bytes and micro-units of charge.
// Times are milliseconds since 1970 in UTC. What an attempt is charged for is measured on
// its node with a clock that counts through suspend; it is never end minus start.
package accounting
