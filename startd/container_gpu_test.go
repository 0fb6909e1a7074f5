package startd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/wire"
)

// TestContainerWithGPU: a task with a GPU in an image has the machine's driver there, and
// finds it.
func TestContainerWithGPU(t *testing.T) {
	t.Parallel()
	m := fakelib.New(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{
		{UUID: "GPU-a", Model: "NVIDIA Test", Memory: 16 * roost.GiB}}})
	driver := filepath.Join(filepath.Dir(m.Library), "libcuda.so.550.54.15")
	if err := os.WriteFile(driver, []byte("cuda\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(driver, filepath.Join(filepath.Dir(driver), "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	p, digest := newContainerStartd(t, func(p *testStartd) { p.node.Startds[0].GPUs.Library = m.Library })
	s := p.connect("host1", 1)
	reply := s.requestClaim(func(r *wire.ClaimRequest) {
		r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20, Gpus: 1}
	})
	if reply.GetClaim() == 0 {
		t.Fatalf("no claim: %s", reply.GetReason())
	}
	x := s.run(reply.GetClaim(), s.inContainer(digest,
		"cat /name ${LD_LIBRARY_PATH}/libcuda.so.1; echo $PATH; "+
			"rm /usr/local/nvidia/lib64/libcuda.so.1 2>/dev/null || echo kept"))
	want := "blue\ncuda\n/bin:/usr/bin:/usr/local/nvidia/bin\nkept\n"
	if got := string(x.GetStdout()); got != want {
		t.Errorf("got %q, want %q: %v", got, want, exitText(x))
	}
}
