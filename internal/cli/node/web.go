package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// WebCommand returns roost web: log in to the pages of the pool.
func WebCommand() *frame.Command {
	return &frame.Command{
		Name: "web", Group: frame.GroupSee, Summary: "log in to the pages of the pool",
		Synopsis: "[login | token add NAME | token list | token rm ID]", MaxOperands: -1, Run: runWeb,
		Description: "login prints a link to the pages with which you are logged in there. It can be used once and " +
			"within a minute, from any machine that reaches the pages. token add makes an API token for a program, " +
			"and prints it once; token list and token rm show and remove yours. Without an operand it runs the web " +
			"daemon of a node, which its master does; see roost-web(8).",
		Examples: []frame.Example{
			{Line: "roost web login", Description: "print a link to the pages"},
			{Line: "roost web token add ci --scope read,submit --expires 30d",
				Description: "let a program submit jobs and look at them"},
			{Line: "roost web token add laptop --remote https://roost.example.org",
				Description: "the same on another machine, with the login that roost login has made there"},
			{Line: "roost web token rm 3f9c21d0aa", Description: "take that back"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "scope", Usage: "what the token is for: some of `read,submit,act,metrics,admin`",
				Value: "read"},
			&ucli.StringFlag{Name: "expires", Usage: "how `LONG` the token is good, 90 days at most", Value: "30d"},
			&ucli.StringFlag{Name: "remote", Usage: "use the web daemon at `URL`, with the login that roost login " +
				"has made on this machine"},
			&ucli.StringFlag{Name: "authority",
				Usage: "with --remote: certificates in `FILE` sign that of the web daemon"},
			nodeaccess.ConfigFlag(), frame.JSONFlag(),
		},
	}
}

func runWeb(c *frame.Invocation) error {
	if c.StringFlag("remote") != "" && (len(c.Args) == 0 || c.Args[0] != "token") {
		return frame.UsageErrorf("--remote is for roost web token; a browser elsewhere opens the page of logins")
	}
	switch words := strings.Join(c.Args[:min(len(c.Args), 2)], " "); {
	case len(c.Args) == 0:
		return c.ExecDaemon("web", "--config", c.StringFlag("config"))
	case len(c.Args) == 1 && words == "login":
		return printWebLink(c)
	case len(c.Args) == 3 && words == "token add":
		return addWebToken(c, c.Args[2])
	case len(c.Args) == 2 && words == "token list":
		return listWebTokens(c)
	case len(c.Args) == 3 && words == "token rm":
		return removeWebToken(c, c.Args[2])
	}
	return frame.UsageErrorf("write it as roost web login, or roost web token add NAME, token list or token rm ID")
}

// Lives of what is used at once.
const (
	webLinkLife    = time.Minute
	webSessionLife = 24 * time.Hour
)

// webToken asks the schedd of this host for a login token for the web daemon.
func webToken(c *frame.Invocation, validity time.Duration) (made *scheddapi.LoginTokenReply, err error) {
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		made, err = s.LoginToken(ctx, &scheddapi.LoginTokenRequest{Life: int64(webLinkLife), Validity: int64(validity),
			Web: true})
		return err
	})
	return made, err
}

// printWebLink prints a link with which the user is logged in.
func printWebLink(c *frame.Invocation) error {
	made, err := webToken(c, webSessionLife)
	if err != nil {
		return err
	}
	link := made.GetUrl() + "/login#" + made.GetToken()
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"url": link,
			"expires": document.Timestamp(made.GetExpires())})
	}
	fmt.Fprintln(c.Stderr, "Open this in a browser within a minute. It is good once, and whoever has it is you there.")
	_, err = fmt.Fprintln(c.Stdout, link)
	return err
}

// webTokenRecord is an API token as the web daemon describes it.
type webTokenRecord struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Scopes  []string  `json:"scopes"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Login   string    `json:"login"`
}

// addWebToken makes an API token and prints it.
func addWebToken(c *frame.Invocation, name string) error {
	life, err := roost.ParseDuration(c.StringFlag("expires"))
	days := int((life + 24*time.Hour - 1) / (24 * time.Hour))
	if err != nil || days < 1 || days > 90 {
		return frame.UsageErrorf("--expires: %q is not between a day and 90 days, as in 30d", c.StringFlag("expires"))
	}
	w, proof, err := proveToWeb(c, time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	var reply struct {
		Secret string         `json:"secret"`
		Token  webTokenRecord `json:"token"`
	}
	body := map[string]any{"name": name, "days": days, "scopes": strings.Split(c.StringFlag("scope"), ",")}
	if body["login"] = proof.token; proof.key != nil {
		body["login"], body["key"] = "", proof.key
	}
	if err := w.call("POST", "/v1/tokens", body, &reply); err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"secret": reply.Secret, "token": reply.Token})
	}
	fmt.Fprintf(c.Stderr, "This is shown once. Programs send it as Authorization: Bearer to %s/v1/… until %s.\n\n",
		w.url, reply.Token.Expires.Format(time.DateOnly))
	_, err = fmt.Fprintln(c.Stdout, reply.Secret)
	return err
}

// withWebSession calls f with a client that is logged in, and logs it out.
func withWebSession(c *frame.Invocation, f func(w *webClient) error) error {
	w, proof, err := proveToWeb(c, webSessionLife)
	if err != nil {
		return err
	}
	if w.http.Jar, err = cookiejar.New(nil); err != nil {
		return err
	}
	if err := w.call("POST", "/v1/session", proof.body(), nil); err != nil {
		return err
	}
	err = f(w)
	if lerr := w.call("DELETE", "/v1/session", nil, nil); err == nil {
		err = lerr
	}
	return err
}

func listWebTokens(c *frame.Invocation) error {
	var reply struct {
		Tokens []webTokenRecord `json:"tokens"`
	}
	if err := withWebSession(c, func(w *webClient) error {
		return w.call("GET", "/v1/tokens", nil, &reply)
	}); err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"tokens": reply.Tokens})
	}
	if len(reply.Tokens) == 0 {
		fmt.Fprintln(c.Stderr, "you have no API tokens; make one with: roost web token add NAME")
		return nil
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "TOKEN"}, {Head: "NAME"}, {Head: "SCOPES"},
		{Head: "LOGIN"}, {Head: "MADE", DropPriority: 1}, {Head: "EXPIRES"}}}
	for _, k := range reply.Tokens {
		t.AddRow(frame.TableCell{Text: k.ID}, frame.TableCell{Text: document.PrintableText(k.Name)},
			frame.TableCell{Text: document.PrintableText(strings.Join(k.Scopes, ","))}, frame.TableCell{Text: k.Login},
			frame.TableCell{Text: c.AgoText(k.Made.UnixNano())}, frame.TableCell{Text: admin.UntilText(c, k.Expires)})
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

func removeWebToken(c *frame.Invocation, id string) error {
	if strings.ContainsAny(id, "/?#%") {
		return frame.UsageErrorf("%q is no id of a token; see roost web token list", id)
	}
	if err := withWebSession(c, func(w *webClient) error {
		return w.call("DELETE", "/v1/tokens/"+id, nil, nil)
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "API token %s is removed, and its login is revoked.\n", id)
	return nil
}

// webClient calls the HTTP API of the web daemon.
type webClient struct {
	c    *frame.Invocation
	url  string
	http http.Client
}

// maxWebReply bounds what is read of an answer.
const maxWebReply = 1 << 20

// call makes one request. into may be nil.
func (w *webClient) call(method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(w.c.Context, frame.SubmitTimeout)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin") // no page of another site has made it
	answer, err := w.http.Do(r)
	if err != nil {
		return frame.WithHint(fmt.Errorf("web daemon at %s: %w: %w", w.url, roost.Unavailable, err),
			"does it run? see: roost doctor")
	}
	defer answer.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(answer.Body, maxWebReply))
	if err != nil {
		return fmt.Errorf("web daemon at %s: %w: %w", w.url, roost.Unavailable, err)
	}
	if answer.StatusCode >= 300 {
		return webError(answer.StatusCode, reply)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(reply, into)
}

// webError makes an error of a problem document.
func webError(status int, text []byte) error {
	var p struct{ Detail, Cure string }
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		p.Detail = http.StatusText(status)
	}
	kind := roost.Invalid
	switch {
	case status == http.StatusNotFound:
		kind = roost.NotFound
	case status == http.StatusForbidden:
		kind = roost.PermissionDenied
	case status == http.StatusUnauthorized:
		kind = roost.Unauthenticated
	case status == http.StatusTooManyRequests:
		kind = roost.Exhausted
	case status >= 500:
		kind = roost.Unavailable
	}
	err := frame.KindErrorf(kind, "%s", document.PrintableText(p.Detail))
	if p.Cure != "" {
		return frame.WithHint(err, document.PrintableText(p.Cure))
	}
	return err
}
