package meter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/slot"
)

// TestSelectDiskVictims: the largest excess leaves first, and production last.
func TestSelectDiskVictims(t *testing.T) {
	const mib = int64(roost.MiB)
	holder := func(id int, band roost.PriorityBand, bytes, asked int64) diskHolder {
		return diskHolder{claim: slot.ClaimID(id), band: band, bytes: bytes * mib, asked: asked * mib,
			began: roost.BootTime(id) * roost.BootTime(time.Second)}
	}
	leaving := holder(9, roost.BatchBand, 40, 0)
	leaving.isLeaving = true
	for _, c := range []struct {
		name string
		need int64
		all  []diskHolder
		want []uint64
	}{
		{"nothing is short", 0, []diskHolder{holder(1, roost.BatchBand, 10, 0)}, nil},
		{"most over its request", 20, []diskHolder{holder(1, roost.BatchBand, 90, 80),
			holder(2, roost.BatchBand, 30, 0), holder(3, roost.ProductionBand, 99, 0)}, []uint64{2}},
		{"then the lower band", 20, []diskHolder{holder(1, roost.BatchBand, 30, 50), holder(2, roost.FreeBand, 30, 50)},
			[]uint64{2}},
		{"then the youngest", 20, []diskHolder{holder(1, roost.BatchBand, 30, 50), holder(2, roost.BatchBand, 30, 50)},
			[]uint64{2}},
		{"production over its request at last", 40, []diskHolder{holder(1, roost.BatchBand, 5, 9),
			holder(2, roost.ProductionBand, 60, 50), holder(3, roost.ProductionBand, 60, 60)}, []uint64{1, 2}},
		{"one leaves already", 30, []diskHolder{leaving, holder(1, roost.BatchBand, 30, 0)}, nil},
		{"others fill the disk", 100, []diskHolder{holder(1, roost.BatchBand, 30, 0)}, nil},
		{"production stays", 100, []diskHolder{holder(1, roost.ProductionBand, 100, 100)}, nil},
	} {
		got := selectDiskVictims(c.need*mib, c.all, func(h diskHolder) int64 { return h.bytes },
			func(h diskHolder) int64 { return max(h.bytes-h.asked, 0) })
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFileSystemShortage(t *testing.T) {
	const mib, gib = int64(roost.MiB), int64(roost.GiB)
	for _, c := range []struct {
		state        fileSystemState
		bytes, files int64
	}{
		{fileSystemState{freeBytes: 5 * gib, bytes: 100 * gib, freeFiles: 5000, files: 100_000}, 0, 0},
		{fileSystemState{freeBytes: gib / 2, bytes: 100 * gib, freeFiles: 5000, files: 100_000}, 3 * gib / 2, 0},
		{fileSystemState{freeBytes: gib / 2, bytes: 10_000 * gib, freeFiles: 900, files: 100_000}, 3 * gib / 2, 1100},
		{fileSystemState{freeBytes: mib, bytes: 100 * mib}, 9 * mib, 0},
		{fileSystemState{freeBytes: 6 * mib, bytes: 100 * mib, freeFiles: 1, files: 100}, 0, 9},
	} {
		if b, f := c.state.shortBytes(), c.state.shortFiles(); b != c.bytes || f != c.files {
			t.Errorf("%+v: got %d bytes and %d files, want %d and %d", c.state, b, f, c.bytes, c.files)
		}
	}
}

func TestDiskReasons(t *testing.T) {
	short := fileSystemState{freeBytes: 1 << 20, bytes: 100 << 20}
	for _, c := range []struct {
		holder diskHolder
		state  fileSystemState
		want   string
	}{
		{diskHolder{bytes: 3 << 20}, short, "(1MiB of 100MiB are left), and it holds 3MiB and asked for none"},
		{diskHolder{bytes: 3 << 20, asked: 1 << 20}, short, "it holds 3MiB, 2MiB more than it asked for"},
		{diskHolder{bytes: 3 << 20, asked: 4 << 20, band: roost.FreeBand}, short, "which it asked for, in band free"},
		{diskHolder{files: 77}, fileSystemState{freeBytes: 50, bytes: 100, freeFiles: 1, files: 100},
			"(1 of 100 inodes are left), and it holds 77 files"},
	} {
		if got := c.holder.reason(c.state); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if s, ok := readFileSystem(t.TempDir()); !ok || s.bytes <= 0 {
		t.Errorf("got %+v", s)
	}
}
