// Package cellqueue keeps one job queue on several central managers, so that its jobs
// outlive any of them. The log of the queue is replicated by internal/replica. Each
// member has a whole journal and a history on its own disk. The schedd of the leader acts
// for the queue; the other members follow.
//
//	           elected: the schedd opens            committed by a
//	┌────────┐ the journal as after a restart ┌─────────┐  majority, then
//	│ follow │ ─────────────────────────────▶ │  lead   │  in the journal
//	└────────┘ ◀───────────────────────────── └─────────┘  of each member
//	   ▲        deposed: the schedd has ended,
//	   │        and the journal is read again
//	   └── a committed batch: into the journal, and applied to a copy of the queue, of
//	       which checkpoints are made
//
// A batch has its number in the journal, which is the same on all members. So entries
// that raft applies again after a restart are recognized, and a leader of before cannot
// add a batch after those of its successor.
//
// A member does not sync each batch: the replicated log has it on disk. After a loss of
// power the journal may lack the last batches, which raft applies again. If it is damaged
// it is replaced by raft's last snapshot and the entries after that.
package cellqueue
