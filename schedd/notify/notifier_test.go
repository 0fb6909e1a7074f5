package notify

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd/queue"
)

func testNotification(id string) queue.JobNotification {
	return queue.JobNotification{
		What: queue.EndEvent, Time: time.Now().UnixNano(), ID: id, Name: "näme\nBcc: x@y", Queue: "batch", Owner: "ann",
		UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Exit: &queue.AttemptExit{Code: 3, User: 5e9, Wall: 61e9, Used: queue.ResourceUsage{Peak: 2048}}, Node: "n1",
	}
}

// TestMail checks that a mail is a valid message, with one line for each field. No job
// may write its headers.
func TestMail(t *testing.T) {
	n := testNotification("12.h")
	n.Users = "Ann Bee <ann@example.org>, bob, -oX/etc/passwd, bad address"
	m := userMessage{recipients(&n), []queue.JobNotification{n}}
	if want := []string{"ann@example.org", "bob"}; fmt.Sprint(m.recipients) != fmt.Sprint(want) {
		t.Errorf("to: got %q, want %q", m.recipients, want)
	}
	got, err := mail.ReadMessage(strings.NewReader(string(m.mailMessage("roost@h", "h", time.Unix(0, 0)))))
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
	if subject != "PBS JOB 12.h" || got.Header.Get("Bcc") != "" || got.Header.Get("From") != "roost@h" {
		t.Errorf("headers: %v", got.Header)
	}
	body, _ := io.ReadAll(quotedprintable.NewReader(got.Body))
	for _, line := range []string{
		"PBS Job Id: 12.h", "Job Name:   näme Bcc: x@y", "Execution terminated", "Job_Owner=ann@h", "queue=batch",
		"server=h", "exec_host=n1", "Exit_status=3",
		"resources_used.cput=00:00:05", "resources_used.mem=2kb", "resources_used.walltime=00:01:01",
	} {
		if !strings.Contains(string(body), line+"\r\n") && !strings.Contains(string(body), line+"\n") {
			t.Errorf("%q is missing in\n%s", line, body)
		}
	}
	n.Users = ""
	if to := recipients(&n); len(to) != 1 || to[0] != "ann" {
		t.Errorf("without -M: %q", to)
	}
}

// writeHook writes a hook that appends its input to a file below dir. It fails while
// there is a file "busy".
func writeHook(t *testing.T, dir string) string {
	path := filepath.Join(dir, "hook")
	text := "#!/bin/sh\ntest ! -e " + dir + "/busy || exit 75\ncat >>" + dir + "/got\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, dir string) *Notifier {
	n, err := Open(DeliveryOptions{
		Dir: filepath.Join(dir, "outbox"), OwnUID: config.NotifySettings{Mail: "none", Hook: writeHook(t, dir)},
		Host: "h", Log: slog.New(slog.DiscardHandler),
		Groups: func(uint32) []uint32 { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRestart checks that the next start delivers undelivered notifications and then
// deletes them.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	// the schedd dies before the events are in its log
	n.Enqueue([]queue.JobNotification{testNotification("1.h"), testNotification("2.h")})
	os.WriteFile(filepath.Join(dir, "outbox", "00000000000000000009.json.new"), []byte("half"), 0o600)
	os.WriteFile(filepath.Join(dir, "outbox", "00000000000000000007.json"), []byte("broken"), 0o600)
	n = open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	for {
		left, err := os.ReadDir(filepath.Join(dir, "outbox"))
		if err == nil && len(left) == 0 {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("it was not delivered")
		default:
		}
	}
	cancel()
	<-done
	got, _ := os.ReadFile(filepath.Join(dir, "got"))
	if strings.Count(string(got), "\n") != 1 || !strings.Contains(string(got), `"id":"1.h"`) ||
		!strings.Contains(string(got), `"id":"2.h"`) || !strings.Contains(string(got), `"exit_status":3`) {
		t.Errorf("got %s", got)
	}
}

// TestRate checks that many notifications at once become a few messages, in order and
// without loss.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &recipientDigest{}
		sent := 0
		for range 100 {
			if p.allowMessage(time.Now()) {
				sent++
			}
		}
		if sent != maxBurst {
			t.Errorf("at once: got %d, want %d", sent, maxBurst)
		}
		time.Sleep(burstRefill + time.Millisecond)
		if !p.allowMessage(time.Now()) || p.allowMessage(time.Now()) {
			t.Error("after a while there is one more, and no other")
		}
		time.Sleep(maxBurst * burstRefill * 2)
		if got := p.burstSpent(time.Now()); got != 0 {
			t.Errorf("later: got %v", got)
		}
	})
}

// TestRetryDelivery checks that a failed message is retried, and dropped when it is too
// old.
func TestRetryDelivery(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	busy := filepath.Join(dir, "busy")
	os.WriteFile(busy, nil, 0o600)
	n.Enqueue([]queue.JobNotification{testNotification("1.h")})()
	p := &recipientDigest{queued: n.waitForNotifications(t.Context(), false)}
	who := messageRecipient{uid: uint32(os.Geteuid())}
	n.sendNext(t.Context(), who, p)
	if len(p.queued) != 1 || p.retryWait != minRetry {
		t.Fatalf("got %d letters, wait %v", len(p.queued), p.retryWait)
	}
	n.sendNext(t.Context(), who, p)
	if p.retryWait != minRetry {
		t.Errorf("it was offered again at once")
	}
	p.retryAt, p.queued[0].Value.Time = time.Time{}, time.Now().Add(-2*retention).UnixNano()
	n.sendNext(t.Context(), who, p)
	if left, _ := os.ReadDir(filepath.Join(dir, "outbox")); len(p.queued) != 0 || len(left) != 0 || n.digests != 0 {
		t.Errorf("too old: %d letters, %d files, %d kept", len(p.queued), len(left), n.digests)
	}
}

// TestFull checks that notifications beyond the bound are dropped.
func TestFull(t *testing.T) {
	n := open(t, t.TempDir())
	n.digests = maxSpooled - 1
	n.Enqueue([]queue.JobNotification{testNotification("1.h"), testNotification("2.h")})()
	if n.digests != maxSpooled || len(n.arrived) != 1 {
		t.Errorf("kept %d, new %d", n.digests, len(n.arrived))
	}
	n.Enqueue([]queue.JobNotification{testNotification("3.h")})()
	if n.digests != maxSpooled {
		t.Errorf("kept %d", n.digests)
	}
}
