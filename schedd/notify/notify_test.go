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

func notice(id string) queue.Notice {
	return queue.Notice{
		What: queue.Finished, Time: time.Now().UnixNano(), ID: id, Name: "näme\nBcc: x@y", Queue: "batch", Owner: "ann", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Exit: &queue.Exit{Code: 3, User: 5e9, Wall: 61e9, Used: queue.Used{Peak: 2048}}, Node: "n1",
	}
}

// TestMail: what is sent is a message that others can read, of one line for each thing, and no job writes its headers.
func TestMail(t *testing.T) {
	n := notice("12.h")
	n.Users = "Ann Bee <ann@example.org>, bob, -oX/etc/passwd, bad address"
	m := message{recipients(&n), []queue.Notice{n}}
	if want := []string{"ann@example.org", "bob"}; fmt.Sprint(m.to) != fmt.Sprint(want) {
		t.Errorf("to: got %q, want %q", m.to, want)
	}
	got, err := mail.ReadMessage(strings.NewReader(string(m.mail("roost@h", "h", time.Unix(0, 0)))))
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
	if subject != "PBS JOB 12.h" || got.Header.Get("Bcc") != "" || got.Header.Get("From") != "roost@h" {
		t.Errorf("headers: %v", got.Header)
	}
	body, _ := io.ReadAll(quotedprintable.NewReader(got.Body))
	for _, line := range []string{
		"PBS Job Id: 12.h", "Job Name:   näme Bcc: x@y", "Execution terminated", "Job_Owner=ann@h", "queue=batch", "server=h", "exec_host=n1", "Exit_status=3",
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

// program writes a hook that keeps what it gets in a file below dir, and fails while there is a file "busy".
func program(t *testing.T, dir string) string {
	path := filepath.Join(dir, "hook")
	text := "#!/bin/sh\ntest ! -e " + dir + "/busy || exit 75\ncat >>" + dir + "/got\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, dir string) *Notifier {
	n, err := Open(Options{
		Dir: filepath.Join(dir, "outbox"), Own: config.Notify{Mail: "none", Hook: program(t, dir)}, Host: "h", Log: slog.New(slog.DiscardHandler),
		Groups: func(uint32) []uint32 { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRestart: what was kept and not delivered is delivered by the next start, and then is gone.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	n.Keep([]queue.Notice{notice("1.h"), notice("2.h")}) // and the schedd dies before the facts are in its log
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
	if strings.Count(string(got), "\n") != 1 || !strings.Contains(string(got), `"id":"1.h"`) || !strings.Contains(string(got), `"id":"2.h"`) || !strings.Contains(string(got), `"exit_status":3`) {
		t.Errorf("got %s", got)
	}
}

// TestRate: many notices at once become a few messages, in order and without loss.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pile{}
		sent := 0
		for range 100 {
			if p.allow(time.Now()) {
				sent++
			}
		}
		if sent != burst {
			t.Errorf("at once: got %d, want %d", sent, burst)
		}
		time.Sleep(every + time.Millisecond)
		if !p.allow(time.Now()) || p.allow(time.Now()) {
			t.Error("after a while there is one more, and no other")
		}
		time.Sleep(burst * every * 2)
		if got := p.spent(time.Now()); got != 0 {
			t.Errorf("later: got %v", got)
		}
	})
}

// TestBusy: what is not taken stays, and is offered again later; what is too old is given up.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	busy := filepath.Join(dir, "busy")
	os.WriteFile(busy, nil, 0o600)
	n.Keep([]queue.Notice{notice("1.h")})()
	p := &pile{letters: n.fresh(t.Context(), false)}
	who := person{uid: uint32(os.Geteuid())}
	n.tell(t.Context(), who, p)
	if len(p.letters) != 1 || p.wait != firstWait {
		t.Fatalf("got %d letters, wait %v", len(p.letters), p.wait)
	}
	n.tell(t.Context(), who, p)
	if p.wait != firstWait {
		t.Errorf("it was offered again at once")
	}
	p.until, p.letters[0].Time = time.Time{}, time.Now().Add(-2*keepFor).UnixNano()
	n.tell(t.Context(), who, p)
	if left, _ := os.ReadDir(filepath.Join(dir, "outbox")); len(p.letters) != 0 || len(left) != 0 || n.kept != 0 {
		t.Errorf("too old: %d letters, %d files, %d kept", len(p.letters), len(left), n.kept)
	}
}

// TestFull: more than the outbox holds is dropped and does not grow.
func TestFull(t *testing.T) {
	n := open(t, t.TempDir())
	n.kept = maxKept - 1
	n.Keep([]queue.Notice{notice("1.h"), notice("2.h")})()
	if n.kept != maxKept || len(n.new) != 1 {
		t.Errorf("kept %d, new %d", n.kept, len(n.new))
	}
	n.Keep([]queue.Notice{notice("3.h")})()
	if n.kept != maxKept {
		t.Errorf("kept %d", n.kept)
	}
}
