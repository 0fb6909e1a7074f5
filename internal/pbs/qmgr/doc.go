// Package qmgr understands the commands of PBS's qmgr, and says in PBS's attributes what
// queues, and the pool that is PBS's server, are set to.
//
//	line ──▶ ParseCommand ──▶ Command ──▶ AttributeChange on a ledger.QueuePolicy or a ledger.PoolLimits ──▶ what is to be told to the negotiator
//	                                              │
//	                                              └──▶ Attributes ──▶ list, print; qstat -Qf, -Bf
//
// What Print writes, ParseCommand reads and AttributeChange makes the same of again. What
// OpenPBS has beside is refused with what there is instead ([RefuseForeign]). The
// attributes are those of OpenPBS, pbs_queue_attributes(7B) and
// pbs_server_attributes(7B), as far as Roost has what they set, and Roost's own: band,
// allowed_users and allowed_groups of queues.
//
// The package is pure.
package qmgr
