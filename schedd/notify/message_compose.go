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

// userMessage is one message to one user: about one job, or a digest of several.
type userMessage struct {
	recipients    []string
	notifications []queue.JobNotification
}

// localAddress matches names to which the machine's own mail system delivers.
var localAddress = regexp.MustCompile(`^[A-Za-z0-9._+][A-Za-z0-9._+-]*$`)

// recipients returns the addresses of -M, or else the owner. It ignores invalid
// addresses.
func recipients(n *queue.JobNotification) (to []string) {
	for item := range strings.SplitSeq(n.Users, ",") {
		item = strings.TrimSpace(item)
		if a, err := mail.ParseAddress(item); err == nil && !strings.HasPrefix(a.Address, "-") {
			to = append(to, a.Address)
		} else if localAddress.MatchString(item) {
			to = append(to, item)
		}
	}
	if len(to) == 0 && localAddress.MatchString(n.Owner) {
		to = append(to, n.Owner)
	}
	return to
}

// subject returns the subject on a single line.
func (m *userMessage) subject() string {
	if len(m.notifications) == 1 {
		return "PBS JOB " + m.notifications[0].ID
	}
	count := map[queue.NotificationEvent]int{}
	for _, n := range m.notifications {
		count[n.What]++
	}
	var parts []string
	for _, o := range []queue.NotificationEvent{queue.BeginEvent, queue.EndEvent, queue.AbortEvent} {
		if count[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", count[o], o))
		}
	}
	return fmt.Sprintf("PBS JOBS %s and %d more: %s", m.notifications[0].ID, len(m.notifications)-1,
		strings.Join(parts, ", "))
}

// occasionText returns OpenPBS's text for an event.
func occasionText(o queue.NotificationEvent) string {
	switch o {
	case queue.BeginEvent:
		return "Begun execution"
	case queue.EndEvent:
		return "Execution terminated"
	}
	return "Aborted by PBS Server"
}

// mailBody returns the body of the mail.
func (m *userMessage) mailBody() string {
	var b strings.Builder
	for i := range m.notifications {
		n := &m.notifications[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		row := func(format string, args ...any) { b.WriteString(plainText(fmt.Sprintf(format, args...)) + "\n") }
		row("PBS Job Id: %s", n.ID)
		row("Job Name:   %s", n.Name)
		row("%s", occasionText(n.What))
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
			row("resources_used.cput=%s", formatTime(x.User+x.System))
			row("resources_used.mem=%dkb", max(x.Used.Peak, x.MaxRSS)/int64(roost.KiB))
			row("resources_used.walltime=%s", formatTime(x.Wall))
		}
		row("time=%s", time.Unix(0, n.Time).Format(time.RFC1123Z))
	}
	return b.String()
}

// plainText replaces control characters, which could control terminals.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func formatTime(ns int64) string {
	s := ns / int64(time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// mailMessage returns the whole message (RFC 5322). If from is empty the mail program
// sets the sender.
func (m *userMessage) mailMessage(from, host string, now time.Time) []byte {
	var b bytes.Buffer
	row := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, value) }
	if from != "" {
		row("From", from)
	}
	first := m.notifications[0]
	row("To", strings.Join(m.recipients, ", "))
	row("Subject", mime.QEncoding.Encode("utf-8", plainText(m.subject())))
	row("Date", now.Format(time.RFC1123Z))
	row("Message-ID", fmt.Sprintf("<%s.%d.%v.%d@%s>", strings.NewReplacer("[", "-", "]", "-").Replace(first.ID),
		first.Time, first.What, len(m.notifications), host))
	row("Auto-Submitted", "auto-generated") // RFC 3834: no vacation program answers it
	row("MIME-Version", "1.0")
	row("Content-Type", "text/plain; charset=utf-8")
	row("Content-Transfer-Encoding", "quoted-printable")
	b.WriteByte('\n')
	w := quotedprintable.NewWriter(&b)
	w.Write([]byte(m.mailBody()))
	w.Close()
	return b.Bytes()
}

// hookInput is the document that a hook reads.
type hookInput struct {
	Version int          `json:"v"`
	To      []string     `json:"to"`
	Notices []hookNotice `json:"notices"`
}

type hookNotice struct {
	What    string `json:"what"`
	Time    string `json:"time"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Queue   string `json:"queue,omitempty"`
	Owner   string `json:"owner"`
	Node    string `json:"node,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Status  *int   `json:"exit_status,omitempty"` // PBS's exit status
	Tasks   int    `json:"tasks,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Removed int    `json:"removed,omitempty"`
}

// hookDocument returns the message for a hook, on one line.
func (m *userMessage) hookDocument() []byte {
	d := hookInput{Version: 1, To: m.recipients}
	for _, n := range m.notifications {
		t := hookNotice{
			What: n.What.String(), Time: time.Unix(0, n.Time).UTC().Format(time.RFC3339Nano), ID: n.ID, Name: n.Name,
			Queue: n.Queue, Owner: n.Owner, Node: n.Node,
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
		panic(err) // it contains only texts and numbers
	}
	return append(text, '\n')
}
