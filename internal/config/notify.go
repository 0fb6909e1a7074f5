package config

import (
	"fmt"
	"net/mail"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// NotifySettings configures how a schedd notifies users of their jobs (qsub -m).
type NotifySettings struct {
	// absolute path of a program that takes mail like sendmail(8); "none": no mail;
	// empty: the usual one, if it exists
	Mail string
	Hook string // absolute path of a program that is run for each notification; empty: none
	From string // sender address of mail; empty: the default
}

func (s *blockReader) readNotify(b *hclsyntax.Block, to *NotifySettings) {
	c := s.innerBlock(b)
	c.readSetting("sendmail", `"/usr/sbin/sendmail"`, func(text string) error {
		if text != "none" && !filepath.IsAbs(text) {
			return fmt.Errorf("%q is neither an absolute path nor \"none\"", text)
		}
		to.Mail = text
		return nil
	})
	c.readProgram("hook", &to.Hook)
	c.readSetting("from", `"roost@example.org"`, func(text string) error {
		if _, err := mail.ParseAddress(text); err != nil {
			return fmt.Errorf("%q is no address: %w", text, err)
		}
		to.From = text
		return nil
	})
	c.reportUnknown()
}

func (w fileWriter) writeNotify(n NotifySettings) {
	if n == (NotifySettings{}) {
		return
	}
	b := w.writeBlock("notify")
	b.writeText("sendmail", n.Mail)
	b.writeText("hook", n.Hook)
	b.writeText("from", n.From)
}
