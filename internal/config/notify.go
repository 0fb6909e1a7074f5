package config

import (
	"fmt"
	"net/mail"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Notify says how a schedd tells people of their jobs (qsub -m).
type Notify struct {
	Mail string // absolute path of a program that takes mail as sendmail(8) does; "none": none; empty: the usual one, if it is there
	Hook string // absolute path of a program that is run for each message; empty: none
	From string // address that mail comes from; empty: the usual one
}

func (s *section) readNotify(b *hclsyntax.Block, to *Notify) {
	c := s.inside(b)
	c.set("sendmail", `"/usr/sbin/sendmail"`, func(text string) error {
		if text != "none" && !filepath.IsAbs(text) {
			return fmt.Errorf("%q is neither an absolute path nor \"none\"", text)
		}
		to.Mail = text
		return nil
	})
	c.program("hook", &to.Hook)
	c.set("from", `"roost@example.org"`, func(text string) error {
		if _, err := mail.ParseAddress(text); err != nil {
			return fmt.Errorf("%q is no address: %w", text, err)
		}
		to.From = text
		return nil
	})
	c.done()
}

func (w writer) notify(n Notify) {
	if n == (Notify{}) {
		return
	}
	b := w.block("notify")
	b.text("sendmail", n.Mail)
	b.text("hook", n.Hook)
	b.text("from", n.From)
}
