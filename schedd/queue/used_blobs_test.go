package queue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestUsedBlobs submits jobs with images and packages. Those are what their attempts get,
// and what the checkpoint server must keep. Without digests a job is refused.
func TestUsedBlobs(t *testing.T) {
	d := newTestQueue(t)
	digest := func(n int) string { return fmt.Sprintf("sha256:%064d", n) }
	packages := func(mounts string, digests ...int) string {
		var texts []string
		for _, n := range digests {
			texts = append(texts, strconv.Quote(digest(n)))
		}
		return "PackageMounts = {" + mounts + "}; PackageDigests = {" + strings.Join(texts, ", ") + "}; "
	}
	d.submit(1, "")
	d.submit(1, `ContainerImage = "x@y"; ContainerImageDigest = "`+digest(3)+`"; `+
		packages(`"a@live:/a", "b@live:/b"`, 2, 1))
	d.submit(1, packages(`"a@live:/a"`, 2))
	if got := UsedBlobs(d.queue); !slices.Equal(got, []string{digest(1), digest(2), digest(3)}) {
		t.Errorf("used are %v", got)
	}
	one := newTestQueue(t)
	one.submit(1, packages(`"a@live:/a"`, 2))
	p, err := one.queue.Program(one.start())
	if err != nil || !slices.Equal(p.Packages, []jobad.PackageSpec{{Reference: "a@live", Target: "/a",
		Digest: digest(2)}}) {
		t.Errorf("the attempt gets %v, %v", p.Packages, err)
	}
	_, _, _, err = one.queue.SubmitJobs(one.now, alice, "k", []jobad.SubmitSpec{{
		Ad: parseTestAd(t, `PackageMounts = {"a@live:/a"};`), Count: 1}}, SubmitLimits{})
	if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), roost.AttrPackageDigests) {
		t.Errorf("a label that nobody has looked up: %v", err)
	}
}
