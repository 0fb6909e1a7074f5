package pbs

import (
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// stagedAd is the ad of a job that qsub was given those lists of files for.
func stagedAd(t *testing.T, attributes string) *classad.Ad {
	t.Helper()
	caller := qsub.QsubCaller{
		Dir: "/data/ann", Home: "/home/ann", User: "ann", Host: "srv", Now: time.Unix(1e9, 0),
		Environ: []string{"PATH=/bin"},
		Read:    func(string) ([]byte, error) { return nil, fs.ErrNotExist },
		Stdin:   func() ([]byte, error) { return []byte("true\n"), nil },
		IsDir:   func(path string) bool { return path == "/home/ann/logs" },
	}
	result, err := qsub.ParseQsub([]string{"-W", attributes}, caller)
	if err != nil {
		t.Fatal(err)
	}
	return result.Job.Ad
}

// TestStagedOutput holds that only files in the list of -W stageout are stored, and where
// the list says. No list, however it is written, lets in a path beside its own.
func TestStagedOutput(t *testing.T) {
	for _, test := range []struct {
		list, dir string // below which all of it is
		good, bad []string
	}{
		{"out.txt@srv:/home/ann/results/", "/home/ann/results", []string{"out.txt"}, []string{"other.txt", "out.txt2",
			".ssh/authorized_keys", "../out.txt", "/home/ann/results/out.txt", "results/out.txt"}},
		{"out.txt@srv:uno", "/home/ann", []string{"uno", "uno/below"},
			[]string{"out.txt", "uno2", ".bashrc", "uno/../.bashrc"}},
		{"a@srv:a/uno,b/c@localhost:c/d", "/home/ann", []string{"a/uno", "c/d"},
			[]string{"a/other", "a", "c/e", "b/c", ".bashrc"}},
		{"*.txt@srv:back,tree@srv:results/tree.1", "/home/ann", []string{"back/x.txt", "results/tree.1",
			"results/tree.1/deep/x"}, []string{"back/x.log", "x.txt", "results/other", "back", "back/../x.txt"}},
		{"*.txt@srv:/home/ann/back", "/home/ann/back", []string{"x.txt"}, []string{"x.log", "sub/x.txt", ".ssh/x.txt"}},
		{"out@srv:logs", "/home/ann/logs", []string{"out"}, []string{"logs", "logs/out", "outer"}},
		{"a/[12].d@srv:/x/y", "/x/y", []string{"1.d", "2.d/deep"}, []string{"3.d", "a/3.d"}},
		{"a => b@srv:x", "", nil, nil},
		{"out@srv:/x/odd*name", "/x", []string{"odd*name"}, []string{"oddone", "odd-name", "out"}},
		{".@srv:/x/all", "/x/all", []string{"a", "a/b"}, []string{"../a", "/x"}},
	} {
		t.Run(test.list, func(t *testing.T) {
			if test.dir == "" { // it cannot be written
				_, err := qsub.ParseQsub([]string{"-W", "stageout=" + test.list},
					qsub.QsubCaller{Host: "srv", Stdin: func() ([]byte, error) {
						return nil, nil
					}})
				if err == nil {
					t.Fatal("it was taken")
				}
				return
			}
			ad := stagedAd(t, "stageout="+test.list)
			patterns, ok := ad.Strings(roost.AttrTransferOut)
			if dir, _ := ad.Str(roost.AttrIwd); !ok || dir != test.dir {
				t.Fatalf("%q come back to %s, want %s", patterns, dir, test.dir)
			}
			for _, name := range slices.Concat(test.good, test.bad) {
				asked := userfiles.TransferManifest{IsAsked: userfiles.AskedFilter(patterns)}
				err := asked.Compare([]*wire.FileEntry{{Name: name, Size: 1, Mode: 0o644}})
				if good := slices.Contains(test.good, name); (err == nil) != good {
					t.Errorf("of %q came %s: %v", patterns, name, err)
				}
			}
		})
	}
}
