// Package negotiation is what a schedd and the leader of the negotiators say to each
// other. It sends requests, usage, demands and outcomes, and takes in grants, policies,
// answers about quotas and explanations.
//
// LeaderConn belongs to the schedd's loop, which calls it when something has changed and
// when a message comes; its state that depends on one leader goes with the stream:
//
//	no leader ──LeaderConnected──▶ connected ──LeaderDisconnected──▶ no leader
//	                                  │ ▲
//	                                  └─┘ LeaderMessage
//
// Around it run RunLeaderTracker, which watches all negotiators and opens a stream to the
// one that leads with the highest epoch, and the self placer, which proposes places for
// batch requests where the leader wants that. Both reach the loop through LoopCalls.
//
// Quotas are checked here, too: RequestAdmission runs in the goroutine of a call, asks
// the leader about a submission, and returns what the loop has to do afterwards. Without
// a leader jobs are accepted and the next leader is asked about them.
package negotiation
