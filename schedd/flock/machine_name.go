package flock

import (
	"strings"

	"github.com/roost-batch/roost/internal/rpc"
)

// MachineName returns the name here of a machine of a host pool.
func MachineName(machine, pool string) string { return machine + "@" + pool }

// ParseMachine returns the name of a machine in its own pool, and the pool; "" for this
// pool.
func ParseMachine(name string) (machine, pool string) {
	machine, pool, _ = strings.Cut(name, "@")
	return machine, pool
}

// IsElsewhere reports whether a machine is of another pool.
func IsElsewhere(name string) bool { return strings.Contains(name, "@") }

// IsRemote reports whether an address that another pool names may be dialled. A socket of
// this host may not: whoever answers there would take this schedd for one of its own.
func IsRemote(address string) bool {
	network, _, err := rpc.SplitAddress(address)
	return err == nil && network != "unix"
}

// tagBits is how many bits of an epoch are the negotiator's. The others number the pool,
// so that grants of two pools never have the same id.
const tagBits = 56

// TagEpoch returns an epoch of a pool as it is stored here. Pools are numbered from 1; 0
// is this pool.
func TagEpoch(epoch uint64, pool int) uint64 { return epoch&(1<<tagBits-1) | uint64(pool)<<tagBits }

// SplitEpoch returns an epoch as its pool knows it, and the number of the pool.
func SplitEpoch(tagged uint64) (epoch uint64, pool int) {
	return tagged & (1<<tagBits - 1), int(tagged >> tagBits)
}
