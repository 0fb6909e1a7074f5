package account

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// FirstUser is the lowest id of a person or of a group of persons. Lower ids are the
// system's (login.defs(5), UID_MIN and GID_MIN).
const FirstUser = 1000

// overflowID is Linux's replacement for an id that it cannot show
// (/proc/sys/kernel/overflowuid). It is also the id of nobody and nogroup.
const overflowID = 65534

// CheckUID returns why a number cannot be a user's, or nil.
func CheckUID(uid uint32) error {
	if why := impossibleReason(uid); why != "" {
		return fmt.Errorf("uid %d: %w: %s; submit as yourself", uid, roost.PermissionDenied, why)
	}
	return nil
}

// impossibleReason returns why an id can belong to no user or group, or "".
func impossibleReason(id uint32) string {
	switch id {
	case 1<<32 - 1, 1<<16 - 1:
		return "to the kernel that is no user, but a word for none"
	case overflowID:
		return "that is nobody, as whom the kernel shows everybody whom it cannot name"
	}
	return ""
}

// IDRange is a range of ids, both ends included. The zero value is empty, because 0 is
// root's id.
type IDRange struct{ First, Last uint32 }

// Contains reports whether an id is in the range.
func (r IDRange) Contains(id uint32) bool { return r != (IDRange{}) && r.First <= id && id <= r.Last }

// Size returns the number of ids in the range.
func (r IDRange) Size() uint32 {
	if r == (IDRange{}) {
		return 0
	}
	return r.Last - r.First + 1
}

func (r IDRange) String() string {
	if r == (IDRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// ParseRange reads a range in the form of String; a single id is a range of one.
func ParseRange(text string) (r IDRange, err error) {
	first, last, more := strings.Cut(text, "-")
	if !more {
		last = first
	}
	a, err := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	if err != nil {
		return r, fmt.Errorf("%q is no range of ids: %w", text, roost.Invalid)
	}
	b, err := strconv.ParseUint(strings.TrimSpace(last), 10, 32)
	if r = (IDRange{uint32(a), uint32(b)}); err != nil || a > b {
		return IDRange{}, fmt.Errorf("%q is no range of ids: %w", text, roost.Invalid)
	}
	return r, nil
}

// MappedRanges reads which ids exist for this process. In a container with a part of the
// ids the kernel refuses all others. file is /proc/self/uid_map or gid_map
// (user_namespaces(7)). If it cannot be read, all ids exist.
func MappedRanges(file string) []IDRange {
	all := []IDRange{{0, 1<<32 - 2}}
	text, err := os.ReadFile(file)
	if err != nil {
		return all
	}
	var list []IDRange
	for line := range strings.Lines(string(text)) {
		var first, outside, count uint64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n != 3 || count == 0 || first+count > 1<<32 {
			return all
		}
		list = append(list, IDRange{uint32(first), uint32(min(first+count-1, 1<<32-2))})
	}
	return list
}
