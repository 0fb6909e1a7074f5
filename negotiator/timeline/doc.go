// Package forecast says what will be free of a machine, and when: it is the one place
// where it is decided when what waits can start, and what may start before it without
// delaying it. It is pure.
//
// A [MachineCapacity] has something free now, gets something back at each [Release], and
// gives something away for the time of each [Reservation]. Between the beginnings of
// holds what is free only rises: so whether something fits for a while is asked now, and
// where a hold begins within that while.
//
// # Backfill
//
// What waits at the head of a queue gets a hold from the earliest instant on at which it
// fits ([EarliestFit]); what comes after it may start now if it fits beside that hold for
// as long as it runs ([MachineCapacity.Fits]): so it ends before the head starts, or
// takes what the head leaves. That is EASY (Lifka, The ANL/IBM SP Scheduling System,
// 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, §2.1). With a hold for each that
// waits it is the conservative backfill of the same paper (§2.2). Nothing that declares
// no length ever ends.
//
// On one machine of as many processors as a cluster has, this gives the schedules of EASY
// to the second: the tests of internal/sim compare them with published ones.
package timeline
