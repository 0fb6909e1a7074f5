package api

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestRunNowIsForAdministrators checks that other users are refused before they hear
// whether the job exists (OpenPBS).
func TestRunNowIsForAdministrators(t *testing.T) {
	s := New(Config{Node: &config.Node{Name: "n1", Schedd: &config.ScheddSettings{}}})
	job := selectionTarget{text: "7", TaskSelector: queue.TaskSelector{Job: roost.JobID{Seq: 7, Host: "n2"}}}
	ann := queue.CallerIdentity{User: "ann", UID: 1000, Host: "n1"}
	r := s.applyVerb(&wire.ActRequest{Verb: wire.ActRequest_RUN}, job, ann, time.Unix(9, 0), "")
	if got := roost.ErrorKind(r.GetKind()); got != roost.PermissionDenied {
		t.Errorf("got %v (%s), want %v", got, r.GetError(), roost.PermissionDenied)
	}
}
