package admission

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestServiceNames checks which names of services and users are refused, and that a batch
// job may have any.
func TestServiceNames(t *testing.T) {
	for _, c := range []struct{ user, name, want string }{
		{"ann", "web", ""}, {"ann", "Web-2", ""}, {"ann", "", ""},
		{"ann", "web_1", `"web-1"`}, {"ann", "-", "inner hyphens"}, {"ann", strings.Repeat("w", 64), "at most 63"},
		{"ann.b", "web", `"ann-b"`},
	} {
		ad := classad.New()
		ad.SetAd(roost.AttrService, classad.New())
		if c.name != "" {
			ad.SetString(roost.AttrJobName, c.name)
		}
		e := QueueAdmission{}
		e.Submitter.User = c.user
		err := e.AdmitJobs([]queue.SubmitSpec{{Ad: ad}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("service %q of %q: %v, want %q", c.name, c.user, err, c.want)
		}
		ad.Delete(roost.AttrService)
		if err := e.AdmitJobs([]queue.SubmitSpec{{Ad: ad}}); err != nil {
			t.Errorf("job %q of %q: %v", c.name, c.user, err)
		}
	}
}
