package criu

import (
	"maps"
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/userfiles"
)

// TestEntitled checks the kernel's status of a process against its claim, for images with
// other contents.
func TestEntitled(t *testing.T) {
	r := &restoreAgent{spec: &RestoreSpec{User: userfiles.UserCredential{UID: 1000, GID: 100, Groups: []uint32{7}},
		Init: "/dev/init"}, pid: os.Getpid()}
	good := map[string]string{
		"Name": "sh", "Uid": "1000\t1000\t1000\t1000", "Gid": "100\t100\t100\t100", "Groups": "7 100",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000",
		"CapEff": "0000000000000000", "CapAmb": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1",
		"Seccomp": "2",
	}
	if err := r.checkRights(good, false); err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]string{
		"Uid": "1000\t1000\t0\t1000", "Gid": "100\t42\t100\t100", "Groups": "42", "CapInh": "0000000000000001",
		"CapPrm": "0000000000200000", "CapEff": "0000000000200000",
		"CapAmb": "0000000000000001", "CapBnd": "ffffffffffffffff", "NoNewPrivs": "0",
	} {
		bad := maps.Clone(good)
		bad[field] = value
		if err := r.checkRights(bad, false); err == nil {
			t.Errorf("%s %s passed", field, value)
		}
	}
	if err := r.checkRights(good, true); err == nil {
		t.Error("a first process of the user passed")
	}
}
