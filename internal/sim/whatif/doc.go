// Package whatif answers questions about a cell from a checkpoint, as Borg's Fauxmaster
// does (Verma et al., Large-scale cluster management at Google with Borg, EuroSys 2015,
// §3.1): how many more tasks of a job would fit ([RoomNow]), what a change would do
// ([CompareChange]), and when a job starts ([WhenStarts]).
//
// Package match decides who gets what, from a snapshot that package cellstate makes of
// the checkpoint, as it does for the leader. This package adds the clock and what becomes
// of grants ([Simulation]). A claim begins where its machine would place it, and ends
// with its task. If the claim is young, its schedd then runs another task of the same
// request there, as package dispatch does; otherwise it returns the claim. Usage is
// charged to a copy of the checkpoint's ledger.
//
// It is pure. The checkpoint is not modified.
package whatif
