package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// message is what one person is told at once: of one job, or a digest of several.
type message struct {
	to      []string
	notices []queue.Notice
}

// local is a name that a machine's own mail system delivers to.
var local = regexp.MustCompile(`^[A-Za-z0-9._+][A-Za-z0-9._+-]*$`)

// recipients are the addresses of -M, or else the owner. What is no address is nobody.
func recipients(n *queue.Notice) (to []string) {
	for item := range strings.SplitSeq(n.Users, ",") {
		item = strings.TrimSpace(item)
		if a, err := mail.ParseAddress(item); err == nil && !strings.HasPrefix(a.Address, "-") {
			to = append(to, a.Address)
		} else if local.MatchString(item) {
			to = append(to, item)
		}
	}
	if len(to) == 0 && local.MatchString(n.Owner) {
		to = append(to, n.Owner)
	}
	return to
}

// subject is a single line.
func (m *message) subject() string {
	if len(m.notices) == 1 {
		return "PBS JOB " + m.notices[0].ID
	}
	count := map[queue.Occasion]int{}
	for _, n := range m.notices {
		count[n.What]++
	}
	var parts []string
	for _, o := range []queue.Occasion{queue.Begun, queue.Finished, queue.Aborted} {
		if count[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", count[o], o))
		}
	}
	return fmt.Sprintf("PBS JOBS %s and %d more: %s", m.notices[0].ID, len(m.notices)-1, strings.Join(parts, ", "))
}

// what are OpenPBS's words for occasions.
func what(o queue.Occasion) string {
	switch o {
	case queue.Begun:
		return "Begun execution"
	case queue.Finished:
		return "Execution terminated"
	}
	return "Aborted by PBS Server"
}

// text is the body of the mail.
func (m *message) text() string {
	var b strings.Builder
	for i := range m.notices {
		n := &m.notices[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		row := func(format string, args ...any) { b.WriteString(plain(fmt.Sprintf(format, args...)) + "\n") }
		row("PBS Job Id: %s", n.ID)
		row("Job Name:   %s", n.Name)
		row("%s", what(n.What))
		if n.Reason != "" {
			row("%s", n.Reason)
		}
		if n.Tasks > 0 {
			row("%d subjobs, %d failed, %d deleted", n.Tasks, n.Failed, n.Removed)
		}
		_, host, _ := strings.Cut(n.ID, ".")
		row("Job_Owner=%s@%s", n.Owner, host)
		if n.Queue != "" {
			row("queue=%s", n.Queue)
		}
		row("server=%s", host)
		if n.Node != "" {
			row("exec_host=%s", n.Node)
		}
		if x := n.Exit; x != nil {
			row("Exit_status=%d", x.Status())
			row("resources_used.cput=%s", clock(x.User+x.System))
			row("resources_used.mem=%dkb", max(x.Used.Peak, x.MaxRSS)/int64(roost.KiB))
			row("resources_used.walltime=%s", clock(x.Wall))
		}
		row("time=%s", time.Unix(0, n.Time).Format(time.RFC1123Z))
	}
	return b.String()
}

// plain is text without what steers terminals.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func clock(ns int64) string {
	s := ns / int64(time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// mail is the whole message (RFC 5322). Without from the mail program says from whom it is.
func (m *message) mail(from, host string, now time.Time) []byte {
	var b bytes.Buffer
	row := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, value) }
	if from != "" {
		row("From", from)
	}
	first := m.notices[0]
	row("To", strings.Join(m.to, ", "))
	row("Subject", mime.QEncoding.Encode("utf-8", plain(m.subject())))
	row("Date", now.Format(time.RFC1123Z))
	row("Message-ID", fmt.Sprintf("<%s.%d.%v.%d@%s>", strings.NewReplacer("[", "-", "]", "-").Replace(first.ID), first.Time, first.What, len(m.notices), host))
	row("Auto-Submitted", "auto-generated") // RFC 3834: nobody's vacation answers it
	row("MIME-Version", "1.0")
	row("Content-Type", "text/plain; charset=utf-8")
	row("Content-Transfer-Encoding", "quoted-printable")
	b.WriteByte('\n')
	w := quotedprintable.NewWriter(&b)
	w.Write([]byte(m.text()))
	w.Close()
	return b.Bytes()
}

// told is what a hook reads.
type told struct {
	Version int          `json:"v"`
	To      []string     `json:"to"`
	Notices []toldNotice `json:"notices"`
}

type toldNotice struct {
	What    string `json:"what"`
	Time    string `json:"time"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Queue   string `json:"queue,omitempty"`
	Owner   string `json:"owner"`
	Node    string `json:"node,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Status  *int   `json:"exit_status,omitempty"` // PBS's
	Tasks   int    `json:"tasks,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Removed int    `json:"removed,omitempty"`
}

// document is the message for a hook, on one line.
func (m *message) document() []byte {
	d := told{Version: 1, To: m.to}
	for _, n := range m.notices {
		t := toldNotice{
			What: n.What.String(), Time: time.Unix(0, n.Time).UTC().Format(time.RFC3339Nano), ID: n.ID, Name: n.Name, Queue: n.Queue, Owner: n.Owner, Node: n.Node,
			Reason: n.Reason, Tasks: n.Tasks, Failed: n.Failed, Removed: n.Removed,
		}
		if n.Exit != nil {
			status := n.Exit.Status()
			t.Status = &status
		}
		d.Notices = append(d.Notices, t)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // of texts and numbers
	}
	return append(text, '\n')
}
