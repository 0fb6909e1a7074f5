package queue

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Successes lie on disk as numbers of varying length, each as the difference from what it is likely to be: an array of many tasks takes some
// twenty bytes for each of them.

// appendFinished adds a run of successes: the first index, how many, and six numbers and the node of each.
func (b *book) appendFinished(buf []byte, first, last int) []byte {
	var nums []byte
	ended := int64(0)
	for i := first; i <= last; i++ {
		f := b.finished.items[b.refs[i].place()]
		nums = binary.AppendUvarint(nums, uint64(f.node))
		for _, n := range [...]int64{f.ended - ended, f.ended - f.started - f.wall, f.wall, f.user, f.system, f.maxRSS} {
			nums = binary.AppendVarint(nums, n)
		}
		ended = f.ended
	}
	buf = number(number(buf, 1, uint64(first)), 2, uint64(last-first+1))
	return protowire.AppendBytes(protowire.AppendTag(buf, 3, protowire.BytesType), nums)
}

// errFinished is for a run of successes that is not one.
var errFinished = errors.New("a run of successes is cut short, or names tasks or nodes that are not there")

// decodeFinished reads what appendFinished wrote, for a job of that many tasks.
func (b *book) decodeFinished(raw []byte, tasks int) error {
	var first, count uint64
	var nums []byte
	err := fields(raw, func(f field) error {
		switch f.number {
		case 1:
			first = f.value
		case 2:
			count = f.value
		case 3:
			nums = f.bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	if first >= uint64(tasks) || count > uint64(tasks)-first {
		return errFinished
	}
	ended := int64(0)
	for i := int(first); i < int(first+count); i++ {
		node, n := binary.Uvarint(nums)
		if n <= 0 || node >= uint64(len(b.nodes)) {
			return errFinished
		}
		nums = nums[n:]
		var got [6]int64
		for k := range got {
			if got[k], n = binary.Varint(nums); n <= 0 {
				return errFinished
			}
			nums = nums[n:]
		}
		ended += got[0]
		f := finished{ended: ended, started: ended - got[2] - got[1], wall: got[2], user: got[3], system: got[4], maxRSS: got[5], node: uint32(node)}
		b.set(i, tasks, kindFinished|ref(b.finished.put(f)))
	}
	return nil
}
