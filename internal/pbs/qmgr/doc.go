// Package qmgr parses the commands of PBS's qmgr, and maps queues and the pool, which is
// PBS's server, to PBS's attributes.
//
//	line ─▶ ParseCommand ─▶ Command ─▶ AttributeChange on a ledger.QueuePolicy or
//	                           │       ledger.PoolLimits ─▶ patch for the negotiator
//	                           └─▶ Attributes ─▶ list, print; qstat -Qf, -Bf
//
// ParseCommand reads what PrintCommands writes, and ApplyChange makes the same object of
// it. Attributes that OpenPBS has and Roost lacks are refused with a replacement
// ([RefuseForeign]). The supported ones are those of OpenPBS (pbs_queue_attributes(7B),
// pbs_server_attributes(7B)) for which Roost has a setting, and Roost's own band,
// allowed_users and allowed_groups of queues.
//
// The package is pure.
package qmgr
