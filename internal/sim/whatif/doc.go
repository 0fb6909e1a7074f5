// Package live answers questions about a cell of which there is a checkpoint (Borg's
// Fauxmaster: Verma et al., Large-scale cluster management at Google with Borg, EuroSys
// 2015, §3.1): how many more of a job would fit ([RoomNow]), what a change would do
// ([CompareChange]), when a job starts ([WhenStarts]).
//
// Who gets what is decided by package match, of the snapshot that package picture makes
// of the checkpoint, as the leader would; what is here is the clock, and what becomes of
// grants ([Simulation]): a claim begins where its machine would put it, and ends when its
// task does. Then its schedd runs another task of the same request there if the claim is
// young, as package dispatch does, and gives it back otherwise. What submitters use is
// charged to the checkpoint's own ledger.
//
// It is pure. A checkpoint that is asked about stays as it is.
package whatif
