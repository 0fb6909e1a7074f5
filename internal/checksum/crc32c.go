// Package checksum computes the checksums of records on disk. They are CRC-32C, which
// detects every error of up to three bits in a record and every burst of up to 32 bits.
// CPUs compute it at many GB/s. No cryptographic digest is needed, because disks are not
// attackers. The checksum also identifies a single flipped bit, which a repair corrects.
package checksum

import (
	"hash/crc32"
	"math/bits"
)

// Size is the size of a checksum in bytes.
const Size = 4

var table = crc32.MakeTable(crc32.Castagnoli)

// Of returns the checksum of concatenated pieces.
func Of(pieces ...[]byte) (sum uint32) {
	for _, b := range pieces {
		sum = crc32.Update(sum, table, b)
	}
	return sum
}

// FlippedBit finds the bit whose flip changes the checksum of a message by a difference.
// size is the message's size in bytes. at is -1 if the flipped bit is in the checksum
// itself. found is false if no single bit explains the difference. CRC-32C distinguishes
// messages that differ in up to three bits, so there is at most one such bit. For a
// message with more damage there is none, except with a probability of 2^-32 for each of
// its bits.
func FlippedBit(difference uint32, size int) (at int, found bool) {
	if bits.OnesCount32(difference) == 1 {
		return -1, true
	}
	// effect of each bit of a byte on the checksum of a message that ends there, and then
	// of a longer one
	var effects [8]uint32
	for bit := range effects {
		effects[bit] = table[1<<bit]
	}
	for place := size - 1; place >= 0; place-- {
		for bit, effect := range effects {
			if effect == difference {
				return 8*place + bit, true
			}
			effects[bit] = effect>>8 ^ table[effect&0xff]
		}
	}
	return 0, false
}
