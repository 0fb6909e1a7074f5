package schedd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// FetchImage gives the next image that the test has laid out, and waits until there is
// one.
func (f *fakeStartd) FetchImage(_ *wire.FetchImageRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	var data []byte
	select {
	case data = <-f.images:
	case <-stream.Context().Done():
		return context.Canceled
	}
	sum := sha256.Sum256(data)
	f.mu.Lock()
	if f.corruptsImages {
		sum[0]++
	}
	f.mu.Unlock()
	half := len(data) / 2
	for i, c := range []*wire.FileChunk{{Entry: &wire.FileEntry{Name: "image"}}, {Data: data[:half]},
		{Data: data[half:]}, {Eof: true, Sha256: sum[:]}} {
		if i == 2 && f.imageHalfway != nil {
			<-f.imageHalfway
		}
		if err := stream.Send(c); err != nil {
			return err
		}
	}
	return nil
}

// PutImage takes an image.
func (f *fakeStartd) PutImage(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	f.mu.Lock()
	full := f.full
	f.mu.Unlock()
	if full {
		return rpc.Status(fmt.Errorf("%w: the disk has 8KiB free", roost.Exhausted))
	}
	var data []byte
	for {
		c, err := stream.Recv()
		if err != nil {
			return err
		}
		data = append(data, c.GetData()...)
		if c.GetEof() {
			f.restored <- data
			return stream.SendAndClose(&wire.PutReply{Files: 1})
		}
	}
}

// reportCheckpoint says that a checkpoint was taken, of so many bytes.
func (f *fakeStartd) reportCheckpoint(a *wire.AttemptRef, sequence uint64, size int, reason string) {
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{
		Attempt: a, Reason: reason, FrozenNs: int64(20 * time.Millisecond),
		Image: &wire.Image{Sequence: sequence, Attempt: a.GetAttempt(), Size: int64(size), Mac: []byte("mac"),
			Wall: int64(time.Minute), Node: nodeName},
	}}})
}

// run starts a job of one task and returns its id and its attempt, which runs.
func (p *testPool) run(ad string) (string, *wire.Activate) {
	p.Helper()
	id := p.submit("k"+ad, 1, ad).GetIds()[0]
	a := receiveNext(p, p.startd.activated, "an attempt")
	p.startd.started(a.GetAttempt())
	p.await(id, "running 1")
	return id, a
}

// spooledImages lists the images in the spool.
func (p *testPool) spooledImages() string {
	files, err := filepath.Glob(filepath.Join(p.node.Dir, "schedd", "checkpoints", "*", "*"))
	if err != nil {
		p.Fatal(err)
	}
	for i, f := range files {
		files[i], _ = filepath.Rel(filepath.Join(p.node.Dir, "schedd", "checkpoints"), f)
	}
	return strings.Join(files, " ")
}

// assertImages fails unless the spool has exactly the wanted images. It first waits until
// all that was decided by now is on disk.
func (p *testPool) assertImages(want string) {
	p.Helper()
	p.query(&wire.QueryRequest{Limit: 1})
	if got := p.spooledImages(); got != want {
		p.Fatalf("the spool has %q, want %q", got, want)
	}
}

// jobTimeline is what the log tells of a job, a word for each event.
func (p *testPool) jobTimeline(id string) string {
	p.Helper()
	events, err := receive(p.client.Events(p.ctx(), &wire.EventsRequest{Id: id}))
	if err != nil {
		p.Fatal(err)
	}
	var words []string
	for _, e := range events {
		words = append(words, e.GetWhat())
	}
	return strings.Join(words, " ")
}

// TestCheckpointAndRestore checks that the next attempt resumes from a fetched image
// after a restart. When the image cannot be restored, the attempt after that starts from
// nothing.
func TestCheckpointAndRestore(t *testing.T) {
	p, image := newPool(t), bytes.Repeat([]byte("state"), 100_000)
	id, a := p.run("")
	first := a.GetProgram().GetCheckpoint()
	if len(first.GetKey()) != 32 || first.GetNext() != 1 || a.GetHoldForInput() {
		t.Fatalf("the first attempt is told %v", a)
	}
	p.startd.images <- image
	p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "periodic")
	if k := receiveNext(t, p.startd.imageResults, "a word on the image"); k.GetError() != "" || k.GetSequence() != 1 {
		t.Fatalf("got %v", k)
	}
	imageCount := 0
	p.recoveredQueue().EachImage(func(queue.StoredImage) { imageCount++ })
	if imageCount != 1 || p.spooledImages() != "1/0.1.1" {
		t.Fatalf("the node was told that it is kept, and the log has %d, the spool %q", imageCount, p.spooledImages())
	}
	p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "periodic") // the node did not hear it
	if k := receiveNext(t, p.startd.imageResults, "the word again"); k.GetError() != "" {
		t.Fatalf("got %v", k)
	}
	p.stop()
	if err := os.WriteFile(filepath.Join(p.node.Dir, "schedd", "checkpoints", "1", "0.1.2.part"), image,
		0o600); err != nil {
		t.Fatal(err)
	}
	p.startd.setReportedClaims(&wire.ClaimState{
		Claim: a.GetClaim(), Attempt: a.GetAttempt(), Grant: a.GetClaim(), Epoch: 1,
		Exited: exitReport(a.GetAttempt(),
			&wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED, Reason: "its machine is wanted"}, ""),
	})
	p.start()
	receiveNext(t, p.startd.acknowledged, "an acknowledgement")
	b := receiveNext(t, p.startd.activated, "the next attempt")
	second := b.GetProgram()
	if !b.GetHoldForInput() || second.GetRestore().GetSequence() != 1 || second.GetCheckpoint().GetNext() != 2 {
		t.Fatalf("the next attempt is told %v", b)
	}
	if !bytes.Equal(second.GetRestore().GetKey(), first.GetKey()) ||
		bytes.Equal(second.GetCheckpoint().GetKey(), first.GetKey()) {
		t.Fatalf("the next attempt has the key %x for the image, and seals its own with %x",
			second.GetRestore().GetKey(), second.GetCheckpoint().GetKey())
	}
	if string(second.GetRestore().GetMac()) != "mac" || p.spooledImages() != "1/0.1.1" {
		t.Fatalf("it goes on from %v, and the spool has %q", second.GetRestore(), p.spooledImages())
	}
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: b.GetAttempt()}}})
	if got := receiveNext(t, p.startd.restored, "the image"); !bytes.Equal(got, image) {
		t.Fatalf("%d bytes came, want %d", len(got), len(image))
	}
	receiveNext(t, p.startd.launched, "a launch")
	p.startd.exited(b.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_RESTORE, Reason: "criu: no"}, "")
	again := receiveNext(t, p.startd.activated, "another attempt with the image")
	if again.GetProgram().GetRestore().GetSequence() != 1 || p.spooledImages() != "1/0.1.1" {
		t.Fatalf("after one failure it is told %v, and the spool has %q", again, p.spooledImages())
	}
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: again.GetAttempt()}}})
	receiveNext(t, p.startd.restored, "the image")
	receiveNext(t, p.startd.launched, "a launch")
	p.startd.exited(again.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_RESTORE, Reason: "criu: no"}, "")
	c := receiveNext(t, p.startd.activated, "the attempt after that")
	if c.GetProgram().GetRestore() != nil || c.GetHoldForInput() {
		t.Fatalf("it is told %v", c)
	}
	p.assertImages("")
	p.startd.exited(c.GetAttempt(), &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
	if got, want := p.jobTimeline(id),
		"submitted assigned started checkpointed vacated "+
			"assigned unrestored assigned unrestored assigned completed"; got != want {
		t.Errorf("the log says %q, want %q", got, want)
	}
}

// TestNoRoomForImage checks that a node without room for an image does not cause a hold.
// The task resumes from that image as soon as a node has room.
func TestNoRoomForImage(t *testing.T) {
	p, image := newPool(t), []byte("state")
	id, a := p.run("")
	p.startd.images <- image
	p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "vacate")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	receiveNext(t, p.startd.imageResults, "a word on the image")
	p.startd.mu.Lock()
	p.startd.full = true
	p.startd.mu.Unlock()
	for _, full := range []bool{true, false} {
		b := receiveNext(t, p.startd.activated, "the next attempt")
		p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: b.GetAttempt()}}})
		if !full {
			break
		}
		v := receiveNext(t, p.startd.vacated, "the end of an attempt without its image")
		if v.GetCause() != wire.Cause_CAUSE_MACHINE || !strings.Contains(v.GetReason(), "8KiB free") {
			t.Errorf("it is ended with %v", v)
		}
		p.startd.mu.Lock()
		p.startd.full = false
		p.startd.mu.Unlock()
		p.startd.exited(b.GetAttempt(), &wire.ExitStatus{Cause: v.GetCause(), Reason: v.GetReason()}, "")
	}
	if got := receiveNext(t, p.startd.restored, "the image"); !bytes.Equal(got, image) {
		t.Errorf("%q came", got)
	}
	receiveNext(t, p.startd.launched, "a launch")
	if got := p.jobTimeline(id); strings.Contains(got, "held") {
		t.Errorf("the log says %q", got)
	}
}

// TestEndWaitsForImage checks that the end of an attempt waits for its last image. The
// next attempt resumes from that image, and from no earlier one.
func TestEndWaitsForImage(t *testing.T) {
	p, image := newPool(t), []byte("state")
	_, a := p.run("")
	p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "vacate")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	p.startd.images <- image
	receiveNext(t, p.startd.imageResults, "a word on the image")
	if b := receiveNext(t, p.startd.activated, "the next attempt"); b.GetProgram().GetRestore().GetSequence() != 1 {
		t.Fatalf("it goes on from %v", b.GetProgram().GetRestore())
	}
}

// TestImageLostWithEnd checks that an image not stored before a stop comes with its
// attempt's end.
func TestImageLostWithEnd(t *testing.T) {
	p, image := newPool(t), []byte("state")
	_, a := p.run("")
	p.stop()
	end := exitReport(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	end.Unkept = &wire.CheckpointTaken{Attempt: a.GetAttempt(),
		Image: &wire.Image{Sequence: 3, Attempt: 1, Size: int64(len(image))}}
	p.startd.images <- image
	p.startd.setReportedClaims(&wire.ClaimState{Claim: a.GetClaim(), Attempt: a.GetAttempt(), Grant: a.GetClaim(),
		Epoch: 1, Exited: end})
	p.start()
	if b := receiveNext(t, p.startd.activated, "the next attempt"); b.GetProgram().GetRestore().GetSequence() != 3 {
		t.Fatalf("it goes on from %v", b.GetProgram().GetRestore())
	}
}

// TestImageOfAnother checks that an image must name the attempt that its node has. Under
// another name it would be taken for that attempt's image.
func TestImageOfAnother(t *testing.T) {
	p := newPool(t)
	_, a := p.run("")
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{
		Attempt: a.GetAttempt(), Image: &wire.Image{Sequence: 1, Attempt: 2, Size: 5, Server: "elsewhere:1"},
	}}})
	if k := receiveNext(t, p.startd.imageResults, "a word on the image"); k.GetError() == "" {
		t.Error("it is kept")
	}
}

// TestBadImage checks that a damaged image is not stored. The job runs on, and its log
// says so once.
func TestBadImage(t *testing.T) {
	p, image := newPool(t), []byte("state")
	id, a := p.run("")
	p.startd.corruptsImages = true
	for range 3 {
		p.startd.images <- image
		p.startd.reportCheckpoint(a.GetAttempt(), 1, len(image), "periodic")
		if k := receiveNext(t, p.startd.imageResults, "a word on the image"); !strings.Contains(k.GetError(),
			"digest") {
			t.Fatalf("got %v", k)
		}
	}
	for _, reason := range []string{"a socket is open", "a socket is open"} {
		p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{Attempt: a.GetAttempt(),
			Error: reason, Reason: "periodic"}}})
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
	if got, want := p.jobTimeline(id),
		"submitted assigned started checkpoint-failed checkpoint-failed completed"; got != want {
		t.Errorf("the log says %q, want %q", got, want)
	}
	if p.spooledImages() != "" {
		t.Errorf("the spool has %q", p.spooledImages())
	}
}

// TestLostImage checks that an image that is gone from the spool costs only the work in
// it.
func TestLostImage(t *testing.T) {
	p := newPool(t)
	_, a := p.run("")
	for n, image := range []string{"older", "newer!"} {
		p.startd.images <- []byte(image)
		p.startd.reportCheckpoint(a.GetAttempt(), uint64(n+1), len(image), "periodic")
		receiveNext(t, p.startd.imageResults, "a word on the image")
	}
	if err := os.Remove(filepath.Join(p.node.Dir, "schedd", "checkpoints", "1", "0.1.2")); err != nil {
		t.Fatal(err)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	b := receiveNext(t, p.startd.activated, "the next attempt")
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: b.GetAttempt()}}})
	v := receiveNext(t, p.startd.vacated, "an order to end it")
	p.startd.exited(v.GetAttempt(), &wire.ExitStatus{Cause: v.GetCause(), Reason: v.GetReason()}, "")
	c := receiveNext(t, p.startd.activated, "the attempt after that")
	if c.GetProgram().GetRestore().GetSequence() != 1 {
		t.Fatalf("it goes on from %v", c.GetProgram().GetRestore())
	}
}

// TestImagesRemoved checks that images are removed with their task, and that two of them
// are retained. An image that a checkpoint server has is never fetched.
func TestImagesRemoved(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	for n := range uint64(3) {
		p.startd.images <- []byte("state")
		p.startd.reportCheckpoint(a.GetAttempt(), n+1, 5, "asked")
		receiveNext(t, p.startd.imageResults, "a word on the image")
	}
	p.assertImages("1/0.1.2 1/0.1.3")
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{
		Attempt: a.GetAttempt(), Image: &wire.Image{Sequence: 4, Attempt: 1, Size: 5, Server: "elsewhere:1"},
	}}})
	receiveNext(t, p.startd.imageResults, "a word on the image that is elsewhere")
	p.assertImages("1/0.1.3")
	if st := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})[0]; st.GetCheckpoints() !=
		2 {
		t.Errorf("%d are told of", st.GetCheckpoints())
	}
	p.act(wire.ActRequest_REMOVE, id)
	receiveNext(t, p.startd.vacated, "an order to end it")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_REMOVED}, "")
	p.await(id, "removed 1")
	p.assertImages("")
}

// TestOwnerSuspension checks that queries show a suspension for the machine's owner and
// its reason. They show it after a restart too, and show that the task resumes.
func TestOwnerSuspension(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	of := func() *wire.JobStatus {
		return p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})[0]
	}
	notify := func(reason string) {
		p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Suspended{
			Suspended: &wire.Suspended{Attempt: a.GetAttempt(), Frozen: reason != "", Reason: reason},
		}})
	}
	const back = "the owner of n1 is back"
	notify(back)
	p.await(id, "suspended 1")
	if st := of(); !st.GetSuspended() || st.GetSuspendedBy() != "owner" || st.GetReason() != back {
		t.Errorf("got %v", st)
	}
	why, err := p.client.Why(t.Context(), &wire.WhyRequest{Id: id})
	if err != nil || !strings.Contains(why.GetSummary(), back) || len(why.GetAdvice()) != 1 {
		t.Errorf("why: %v, %v", why, err)
	}
	state := &wire.ClaimState{Claim: a.GetClaim(), Attempt: a.GetAttempt(), Grant: a.GetClaim(), Epoch: 1,
		Running: true, Suspended: back}
	p.stop()
	p.startd.setReportedClaims(state)
	p.start()
	if st := of(); st.GetSuspendedBy() != "owner" {
		t.Errorf("after a restart: %v", st)
	}
	p.stop()
	state.Suspended = "" // it went on while the schedd was away
	p.start()
	p.await(id, "running 1")
	notify("")
	notify(back)
	p.await(id, "suspended 1")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED, Reason: back}, "")
	if b := receiveNext(t, p.startd.activated, "another attempt"); b.GetAttempt().GetAttempt() != 2 {
		t.Errorf("got %v", b)
	}
	events, err := receive(p.client.Events(p.ctx(), &wire.EventsRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	reported := ""
	for _, e := range events {
		if strings.Contains(e.GetText(), back) {
			reported += e.GetWhat() + " "
		}
	}
	if reported != "suspended suspended vacated " {
		t.Errorf("its log tells: %s", reported)
	}
}

// TestSuspendResumeCheckpoint checks that owners can suspend, resume and checkpoint their
// running tasks. A node that was away is told again.
func TestSuspendResumeCheckpoint(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	if r := p.act(wire.ActRequest_SUSPEND, id); r.GetTasks() != 1 {
		t.Fatalf("got %v", r)
	}
	if f := receiveNext(t, p.startd.frozen, "a freeze"); !f.GetFrozen() {
		t.Fatalf("got %v", f)
	}
	if st := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})[0]; !st.GetSuspended() ||
		st.GetState() != "suspended" {
		t.Fatalf("got %v", st)
	}
	p.stop()
	p.startd.setReportedClaims(&wire.ClaimState{Claim: a.GetClaim(), Attempt: a.GetAttempt(), Grant: a.GetClaim(),
		Epoch: 1, Running: true})
	p.start()
	if f := receiveNext(t, p.startd.frozen, "the freeze again"); !f.GetFrozen() {
		t.Fatalf("got %v", f)
	}
	p.act(wire.ActRequest_RESUME, id)
	if f := receiveNext(t, p.startd.frozen, "a thaw"); f.GetFrozen() {
		t.Fatalf("got %v", f)
	}
	if r := p.act(wire.ActRequest_CHECKPOINT, id); r.GetTasks() != 1 {
		t.Fatalf("got %v", r)
	}
	if m := receiveNext(t, p.startd.checkpointRequests,
		"a wish for a checkpoint"); m.GetReason() != transfer.CheckpointRequested {
		t.Fatalf("got %v", m)
	}
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{Attempts: []*wire.AttemptUsage{
		{Attempt: a.GetAttempt(), Dumpable: "yes", Usage: &wire.TaskUsage{Memory: 77}},
	}}}})
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
}

// TestKeyIsSecret checks that the key of a job's images is in no ad, no answer and no
// event.
func TestKeyIsSecret(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	key := a.GetProgram().GetCheckpoint().GetKey()
	sel := &wire.Selection{Selectors: []string{id}}
	for _, row := range p.query(&wire.QueryRequest{Selection: sel, Ads: true, Tasks: true}) {
		holdVerb(t, key, row.String(), row.GetAd())
	}
	events, err := receive(p.client.Events(p.ctx(), &wire.EventsRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		holdVerb(t, key, e.String())
	}
}

func holdVerb(t *testing.T, key []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if len(key) == 0 || strings.Contains(text, string(key[:8])) {
			t.Errorf("the key is told in %q", text)
		}
	}
}
