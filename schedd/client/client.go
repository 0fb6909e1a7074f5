package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Options say which pool a client is for.
type Options struct {
	Dir     string // the directory of a pool; empty: $ROOST_DIR, or the usual places
	Program string // the path of roost; empty: $ROOST_PROGRAM, or along PATH
}

// Client is a user's view of a pool. Several goroutines may share one.
type Client struct {
	options Options

	mutex      sync.Mutex
	connection *connection // nil: there was no call yet
}

// New returns a client. The first call starts roost api.
func New(o Options) *Client { return &Client{options: o} }

// Close ends roost api, and interrupts what runs. The next call starts another.
func (c *Client) Close() error {
	c.mutex.Lock()
	there := c.connection
	c.connection = nil
	c.mutex.Unlock()
	if there != nil {
		there.close()
	}
	return nil
}

// connect returns the connection; one that has ended is replaced.
func (c *Client) connect() (*connection, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.connection != nil {
		select {
		case <-c.connection.ended:
			c.connection = nil
		default:
			return c.connection, nil
		}
	}
	fresh, err := connect(c.options)
	if err != nil {
		return nil, err
	}
	c.connection = fresh
	return fresh, nil
}

// Run runs a command line of roost and calls output for each part of what it prints. The
// arguments begin with the command. It is for what this package has no function for.
func (c *Client) Run(ctx context.Context, input string, output func(part []byte) error, arguments ...string) error {
	for {
		there, err := c.connect()
		if err != nil {
			return err
		}
		if err = there.run(ctx, arguments, input, output); !errors.Is(err, errEnded) {
			return err
		}
	}
}

// document runs a command line that prints one document.
func (c *Client) document(ctx context.Context, document any, input string, arguments ...string) error {
	var out bytes.Buffer
	err := c.Run(ctx, input, func(part []byte) error { out.Write(part); return nil }, arguments...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out.Bytes(), document); err != nil {
		return fmt.Errorf("roost %s: %w", arguments[0], err)
	}
	return nil
}

// Submit submits a job.
func (c *Client) Submit(ctx context.Context, spec JobSpec) (*Job, error) {
	jobs, err := c.SubmitText(ctx, spec.jobFile(), rand.Text())
	if err != nil {
		return nil, err
	}
	return &jobs[0], nil
}

// SubmitText submits the jobs of a job file, see roost-job(5): all of them, or none. With
// the same key again nothing is submitted, and the jobs of the first call are returned.
func (c *Client) SubmitText(ctx context.Context, text, key string) ([]Job, error) {
	var found struct {
		Jobs []Job `json:"jobs"`
	}
	if err := c.document(ctx, &found, text, "submit", "--json", "--quiet", "--key", key, "-"); err != nil {
		return nil, err
	}
	if len(found.Jobs) == 0 {
		return nil, &Error{Status: 65, Text: "the job file has no job"}
	}
	for i := range found.Jobs {
		found.Jobs[i].State = Idle
	}
	return found.Jobs, nil
}

// Query selects jobs. The zero value selects the jobs of the user that have not ended.
type Query struct {
	IDs        []string // jobs or tasks, ended or not; empty: all that the rest selects
	AllUsers   bool
	History    bool    // also jobs that have ended
	Tasks      bool    // a record for each task
	States     []State // only in one of these; empty: in any
	Constraint string  // a ClassAd expression over the job's ad; empty: none
	Limit      int     // the most records; 0: all
}

// Jobs lists jobs, the newest first.
func (c *Client) Jobs(ctx context.Context, q Query) ([]Job, error) {
	arguments := []string{"jobs", "--json", "--limit", fmt.Sprint(q.Limit)}
	for _, flag := range []struct {
		set  bool
		name string
	}{{q.AllUsers, "--all"}, {q.History, "--history"}, {q.Tasks, "--tasks"}} {
		if flag.set {
			arguments = append(arguments, flag.name)
		}
	}
	for _, state := range q.States {
		arguments = append(arguments, "--state", string(state))
	}
	if q.Constraint != "" {
		arguments = append(arguments, "--constraint", q.Constraint)
	}
	var found struct {
		Jobs []Job `json:"jobs"`
	}
	err := c.document(ctx, &found, "", append(append(arguments, "--"), q.IDs...)...)
	return found.Jobs, err
}

// Job returns a job or a task by its id, ended or not.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	var found struct {
		Job Job `json:"job"`
	}
	if err := c.document(ctx, &found, "", "show", "--json", "--events", "1", "--", id); err != nil {
		return nil, err
	}
	return &found.Job, nil
}

// Events returns what happened to a job or a task, the first first.
func (c *Client) Events(ctx context.Context, id string) ([]Event, error) {
	var found struct {
		Events []Event `json:"events"`
	}
	err := c.document(ctx, &found, "", "show", "--json", "--events", "0", "--", id)
	return found.Events, err
}

// Wait waits until jobs or tasks have ended, well or not. It returns their records in the
// order of the ids, and goes on through restarts of the schedd.
func (c *Client) Wait(ctx context.Context, ids ...string) ([]Job, error) {
	return c.Watch(ctx, func(Job) {}, ids...)
}

// Watch is Wait that calls changed with the record of a job whenever it has changed.
func (c *Client) Watch(ctx context.Context, changed func(Job), ids ...string) ([]Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var pending bytes.Buffer
	err := c.Run(ctx, "", func(part []byte) error {
		pending.Write(part)
		return takeLines(&pending, changed)
	}, append([]string{"wait", "--json", "--"}, ids...)...)
	var refused *Error
	if err != nil && !(errors.As(err, &refused) && refused.silent) {
		return nil, err
	}
	ended := make([]Job, 0, len(ids))
	for _, id := range ids {
		job, err := c.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		if !job.State.IsFinal() {
			return nil, &Error{Status: 75, Text: fmt.Sprintf("%s is %s again: it was retried", id, job.State)}
		}
		ended = append(ended, *job)
	}
	return ended, nil
}

// takeLines takes the complete lines out of pending.
func takeLines(pending *bytes.Buffer, changed func(Job)) error {
	for {
		end := bytes.IndexByte(pending.Bytes(), '\n')
		if end < 0 {
			return nil
		}
		var found struct {
			Job Job `json:"job"`
		}
		if err := json.Unmarshal(pending.Next(end+1), &found); err != nil {
			return fmt.Errorf("roost wait: %w", err)
		}
		changed(found.Job)
	}
}

// Output returns what a task has written to standard output, or to standard error.
func (c *Client) Output(ctx context.Context, id string, stderr bool) ([]byte, error) {
	arguments := []string{"logs"}
	if stderr {
		arguments = append(arguments, "--stderr")
	}
	var out bytes.Buffer
	err := c.Run(ctx, "", func(part []byte) error { out.Write(part); return nil }, append(arguments, "--", id)...)
	return out.Bytes(), err
}

// Cancel removes jobs or tasks: what runs gets SIGTERM, its notice period, and SIGKILL.
func (c *Client) Cancel(ctx context.Context, reason string, ids ...string) error {
	arguments := []string{"rm", "--yes"}
	if reason != "" {
		arguments = append(arguments, "--reason", reason)
	}
	return c.act(ctx, arguments, ids)
}

// Hold holds jobs or tasks: they do not start before they are released.
func (c *Client) Hold(ctx context.Context, ids ...string) error {
	return c.act(ctx, []string{"hold", "--yes"}, ids)
}

// Release releases jobs or tasks from a hold.
func (c *Client) Release(ctx context.Context, ids ...string) error {
	return c.act(ctx, []string{"release"}, ids)
}

// act runs a command on jobs. Its error is that of the first job that refuses.
func (c *Client) act(ctx context.Context, arguments, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return c.Run(ctx, "", func([]byte) error { return nil }, append(append(arguments, "--"), ids...)...)
}
