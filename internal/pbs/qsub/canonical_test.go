package qsub

import "testing"

// TestCanonical checks that a value has one form, however it was written.
func TestCanonical(t *testing.T) {
	for _, c := range [][3]string{
		{"walltime", "0:5:0", "00:05:00"}, {"walltime", "3600", "01:00:00"}, {"walltime", "123:4:5.6", "123:04:06"},
		{"cput", "1:0:0:0", "24:00:00"}, {"mem", "954MB", "954mb"}, {"mem", "13", "13b"},
		{"pmem", "2G", "2gb"}, {"vmem", "7MW", "7mw"}, {"ncpus", "4", "4"}, {"select", "2:ncpus=1:mem=1GB",
			"2:ncpus=1:mem=1GB"}, {"walltime", "soon", "soon"}, {"wings", "2GB", "2GB"},
	} {
		if got := CanonicalValue(c[0], c[1]); got != c[2] {
			t.Errorf("%s=%s: got %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
