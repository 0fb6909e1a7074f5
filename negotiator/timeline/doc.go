// Package timeline computes what will be free on a machine, and when. It alone decides
// when a waiting request can start, and what may start before it without delaying it. It
// is pure.
//
// A [MachineCapacity] has resources free now, gets some back at each [CapacityRelease],
// and loses some during each [Reservation]. Between the starts of reservations the free
// resources only rise. So to fit for a time, a task must fit now, and at the start of
// each reservation within that time.
//
// # Backfill
//
// The head of a queue gets a reservation from the earliest instant at which it fits
// ([EarliestFit]). Later requests may start now if they fit beside that reservation for
// as long as they run ([MachineCapacity.Fits]): they end before the head starts, or take
// what the head leaves. That is EASY (Lifka, The ANL/IBM SP Scheduling System, 1995;
// Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, §2.1). With a reservation for each
// waiting request it is the conservative backfill of the same paper (§2.2). A task
// without a declared length never ends.
//
// On one machine with as many processors as a cluster, this gives the schedules of EASY
// to the second: the tests of internal/sim compare them with published ones.
package timeline
