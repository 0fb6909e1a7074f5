package eventlog

import (
	"encoding/binary"
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Successes lie on disk as numbers of varying length, each as the difference from what it
// is likely to be: an array of many tasks takes some twenty bytes for each of them.

// appendSuccesses adds a run of successes. It has the first index, how many, six numbers
// and the node of each, and what they used.
func (b *TaskRecords) appendSuccesses(buf []byte, first, last int) []byte {
	var nums, used []byte
	ended := int64(0)
	for i := first; i <= last; i++ {
		f := b.successes.items[b.refs[i].index()]
		for _, n := range f.usage {
			used = binary.AppendUvarint(used, uint64(n))
		}
		nums = binary.AppendUvarint(nums, uint64(f.node))
		for _, n := range [...]int64{f.ended - ended, f.ended - f.started - f.wall, f.wall, f.user, f.system,
			f.maxRSS} {
			nums = binary.AppendVarint(nums, n)
		}
		ended = f.ended
	}
	buf = appendNumber(appendNumber(buf, 1, uint64(first)), 2, uint64(last-first+1))
	buf = protowire.AppendBytes(protowire.AppendTag(buf, 3, protowire.BytesType), nums)
	return protowire.AppendBytes(protowire.AppendTag(buf, 4, protowire.BytesType), used)
}

// compactUsage is what most successes used, in KiB: peak of memory, read, written. It
// says it all if no GPU or scratch directory comes in, and each is below 4 TiB.
type compactUsage [3]uint32

// compactOf gives the little form, and whether it holds all.
func compactOf(u ResourceUsage) (s compactUsage, exact bool) {
	for i, n := range [...]int64{u.Peak, u.Read, u.Written} {
		s[i] = uint32(n >> 10)
	}
	return s, s.usage() == u
}

func (s compactUsage) usage() ResourceUsage {
	return ResourceUsage{Peak: int64(s[0]) << 10, Read: int64(s[1]) << 10, Written: int64(s[2]) << 10}
}

// errBadSuccess is for a run of successes that is not one.
var errBadSuccess = errors.New("a run of successes is cut short, or names tasks or nodes that are not there")

// decodeSuccesses reads what appendSuccesses wrote.
func (b *TaskRecords) decodeSuccesses(raw []byte) error {
	var first, count uint64
	var nums, used []byte // used is missing in what older ones wrote
	err := eachField(raw, func(f encodedField) error {
		switch f.number {
		case 1:
			first = f.value
		case 2:
			count = f.value
		case 3:
			nums = f.bytes
		case 4:
			used = f.bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	if first >= uint64(b.Tasks) || count > uint64(b.Tasks)-first {
		return errBadSuccess
	}
	b.writable()
	ended := int64(0)
	for i := int(first); i < int(first+count); i++ {
		node, n := binary.Uvarint(nums)
		if n <= 0 || node >= uint64(len(b.nodes)) {
			return errBadSuccess
		}
		nums = nums[n:]
		var got [6]int64
		for k := range got {
			if got[k], n = binary.Varint(nums); n <= 0 {
				return errBadSuccess
			}
			nums = nums[n:]
		}
		ended += got[0]
		var kib compactUsage
		for k := range kib {
			if len(used) == 0 {
				break
			}
			v, n := binary.Uvarint(used)
			if n <= 0 || v > math.MaxUint32 {
				return errBadSuccess
			}
			kib[k], used = uint32(v), used[n:]
		}
		f := successRecord{ended: ended, started: ended - got[2] - got[1], wall: got[2], user: got[3], system: got[4],
			maxRSS: got[5], usage: kib, node: uint32(node)}
		b.set(i, refSuccess|recordRef(b.successes.add(f)))
	}
	return nil
}
