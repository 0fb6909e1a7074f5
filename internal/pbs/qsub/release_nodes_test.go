package qsub

import (
	"errors"
	"slices"
	"testing"
)

// TestChunksBeyond checks which chunks a job gives back for a smaller select. Some cases
// are those of OpenPBS's test_basic_use_case_ncpus and test_with_a_custom_str_res.
func TestChunksBeyond(t *testing.T) {
	for _, c := range []struct {
		job, selection string
		want           []uint32 // nil: refused
		left           string
	}{
		{"ncpus=1+2:ncpus=2+2:ncpus=3:mpiprocs=2", "ncpus=2+ncpus=3:mpiprocs=2", []uint32{2, 4},
			"1:ncpus=1+1:ncpus=2+1:ncpus=3:mpiprocs=2"},
		{"ncpus=1+ncpus=2:model=abc+ncpus=2:model=def+ncpus=3:model=def+ncpus=3:model=xyz",
			"ncpus=2:model=def+ncpus=3:model=def", []uint32{1, 4}, "1:ncpus=1+1:ncpus=2:model=def+1:ncpus=3:model=def"},
		{"3:ncpus=1", "2:ncpus=1", []uint32{}, "3:ncpus=1"},
		{"3:ncpus=1", "3:ncpus=1", nil, ""},
		{"3:ncpus=4:mem=1gb", "ncpus=2:mem=512mb", []uint32{2}, "2:ncpus=4:mem=1gb"},
		{"3:ncpus=4:mem=1gb", "mem=2gb", nil, ""},
		{"3:ncpus=1", "host=n2", []uint32{1}, "2:ncpus=1"},
		{"3:ncpus=1", "2", []uint32{}, "3:ncpus=1"},
		{"3:ncpus=1", "host=n9", nil, ""},
		{"3:ncpus=1", "walltime=3", nil, ""},
	} {
		var held []HeldChunk
		all := ExpandSelect(c.job)
		for n, text := range all {
			held = append(held, HeldChunk{n, "n" + string(rune('0'+n)) + ".pool", text})
		}
		got, err := ChunksBeyond(held, c.selection)
		if c.want == nil {
			var refused *RefusalError
			if !errors.As(err, &refused) {
				t.Errorf("%s of %s: %v, %v", c.selection, c.job, got, err)
			}
			continue
		}
		var left []string
		for n, text := range all {
			if !slices.Contains(got, uint32(n)) {
				left = append(left, text)
			}
		}
		if err != nil || !slices.Equal(got, c.want) || JoinSelect(left) != c.left {
			t.Errorf("%s of %s: got %v, %v, which leaves %q", c.selection, c.job, got, err, JoinSelect(left))
		}
	}
	if all := ExpandSelect("2+ncpus=3+9999:ncpus=1"); all != nil {
		t.Errorf("got %d chunks", len(all))
	}
	if all := ExpandSelect("2+ncpus=3"); !slices.Equal(all, []string{"", "", "ncpus=3"}) ||
		JoinSelect(all) != "2+1:ncpus=3" {
		t.Errorf("got %q", all)
	}
}
