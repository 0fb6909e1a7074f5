package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// OIDCProvider is an OpenID provider whose users may log in to the web daemon. The schedd
// of the node speaks to it.
type OIDCProvider struct {
	Name   string
	Title  string // on the button of the page; empty: the name
	Issuer string
	Client string // id of the client at the provider
	// file with the client's secret, which the schedd reads; empty: a public client
	SecretFile string
	Claim      string // of the ID token, whose value names the user; "sub" by default
	// file with a line for each user: the value of the claim, a blank, and the account
	Accounts  string
	Scopes    []string // besides openid; "profile" by default
	Authority string   // file with certificates that sign those of the provider; empty: the system's
	Local     bool     // the provider may be on this host or link, and http is enough there
}

// HostNames returns the names that requests to the web daemon may have in Host.
func (w *WebSettings) HostNames() []string {
	var names []string
	for _, name := range w.Names {
		names = append(names, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	if u, err := url.Parse(w.URL); err == nil {
		names = append(names, strings.ToLower(u.Hostname()))
	}
	for _, addr := range w.Listen {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || strings.HasPrefix(addr, "unix:") {
			continue
		}
		names = append(names, strings.ToLower(host))
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			names = append(names, "localhost")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CallbackURL returns where a provider sends the browser back to.
func (w *WebSettings) CallbackURL(provider string) string {
	return w.URL + "/login/" + url.PathEscape(provider) + "/callback"
}

func (s *blockReader) readProvider(b *hclsyntax.Block, to *WebSettings) {
	p := OIDCProvider{}
	if len(b.Labels) != 1 {
		s.addProblem(b.TypeRange, `write it as: oidc "university" { … }`, "oidc takes one name")
	} else {
		p.Name = b.Labels[0]
		s.checkName("oidc", p.Name, b.LabelRanges[0])
	}
	if slices.ContainsFunc(to.Providers, func(other OIDCProvider) bool { return other.Name == p.Name }) {
		s.addProblem(b.TypeRange, "give each a name of its own", "oidc %q is there twice", p.Name)
	}
	o := s.innerBlock(b)
	o.readText("title", &p.Title)
	o.readSetting("issuer", `"https://sso.example.org/realms/science"`, func(text string) error {
		p.Issuer = text
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("%q is not the address of a provider", text)
		}
		return nil
	})
	o.readText("client", &p.Client)
	o.readText("secret_file", &p.SecretFile)
	o.readText("claim", &p.Claim)
	o.readText("accounts", &p.Accounts)
	o.readList("scopes", `"profile"`, &p.Scopes, func(text string, at hcl.Range) {
		if strings.ContainsAny(text, " \t,") {
			s.addProblem(at, `write it as scopes = ["profile", "email"]`, "scopes: %q is not one scope", text)
		}
	})
	o.readText("authority", &p.Authority)
	o.readBool("local", &p.Local)
	o.reportUnknown()
	if p.Issuer == "" || p.Client == "" || p.Accounts == "" {
		s.addProblem(b.TypeRange, "see etc/nodes/web-oidc.hcl", "oidc needs all of issuer, client and accounts")
	}
	if strings.HasPrefix(p.Issuer, "http:") && !p.Local {
		s.addProblem(b.TypeRange, "use the https address of the provider",
			"oidc: anybody on the way could change what an issuer with http says")
	}
	to.Providers = append(to.Providers, p)
}

func (s *blockReader) readPAM(b *hclsyntax.Block, to *WebSettings) {
	p := s.innerBlock(b)
	p.readName("service", &to.PAMService)
	p.readText("directory", &to.PAMDir)
	p.reportUnknown()
	if to.PAMService == "" {
		s.addProblem(b.TypeRange, `add service = "roost"`, "pam needs the name of a file in /etc/pam.d")
	}
}

// fillLoginDefaults sets defaults for the ways to log in. Files are relative to the node
// file.
func (w *WebSettings) fillLoginDefaults(at string) {
	for i := range w.Providers {
		p := &w.Providers[i]
		if p.Claim == "" {
			p.Claim = "sub"
		}
		if p.Scopes == nil {
			p.Scopes = []string{"profile"}
		}
		for _, file := range []*string{&p.SecretFile, &p.Accounts, &p.Authority} {
			if *file != "" {
				*file = joinBelow(at, *file)
			}
		}
	}
	if w.PAMDir != "" {
		w.PAMDir = filepath.Clean(joinBelow(at, w.PAMDir))
	}
}

func (w fileWriter) writeLogins(to *WebSettings) {
	for i := range to.Providers {
		p := &to.Providers[i]
		b := w.writeBlock("oidc", p.Name)
		b.writeText("title", p.Title)
		b.writeText("issuer", p.Issuer)
		b.writeText("client", p.Client)
		b.writeText("secret_file", p.SecretFile)
		b.writeText("claim", p.Claim)
		b.writeText("accounts", p.Accounts)
		b.writeList("scopes", p.Scopes)
		b.writeText("authority", p.Authority)
		b.writeBool("local", p.Local)
	}
	if to.PAMService != "" {
		b := w.writeBlock("pam")
		b.writeText("service", to.PAMService)
		b.writeText("directory", to.PAMDir)
	}
}
