// Package flock is what a schedd needs to run tasks in other pools: its identity as a
// guest there, and the names of machines and users on both sides.
//
// A pool that lends machines is a host; its administrators and those of this pool have
// agreed on that (roost peer). The schedd has a certificate of the host, which it gets
// with a voucher of its own pool's authority. Machines of the host are called
// "n1@physics" here, so that no machine of this pool has such a name; at the host this
// schedd is called "sub1.chem" and its users "ada@chem".
package flock
