//go:build pam

// Command roost-pam checks a password by PAM for the schedd, where the node file has a
// block pam. It is a program of its own, because it needs cgo and libpam, which no daemon
// has, and because modules of PAM do what they like in the process that loads them.
//
// It reads a line of JSON and the password behind it from its input, and writes a line of
// JSON. It lives for one password, which is in its memory alone.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/msteinert/pam/v2"

	"github.com/roost-batch/roost/internal/identity/proof"
)

const maxLine = 4096

func main() {
	answer := proof.PasswordAnswer{Error: "the question cannot be read", Broken: true}
	in := bufio.NewReaderSize(io.LimitReader(os.Stdin, maxLine+proof.MaxPassword), maxLine)
	line, err := in.ReadSlice('\n')
	var q proof.PasswordQuestion
	if err == nil {
		err = json.Unmarshal(line, &q)
	}
	var password []byte
	if err == nil {
		password, err = io.ReadAll(in)
	}
	if err == nil {
		answer = check(&q, string(password))
	}
	if json.NewEncoder(os.Stdout).Encode(answer) != nil {
		os.Exit(1)
	}
}

// check asks PAM whether a password is right, and whether its account may log in now.
func check(q *proof.PasswordQuestion, password string) proof.PasswordAnswer {
	converse := func(style pam.Style, text string) (string, error) {
		switch style {
		case pam.PromptEchoOff:
			return password, nil
		case pam.PromptEchoOn:
			return "", fmt.Errorf("it asks %q, and there is nobody to answer", text)
		}
		return "", nil // what it says is for nobody
	}
	transaction, err := start(q, converse)
	if err != nil {
		return proof.PasswordAnswer{Error: err.Error(), Broken: true}
	}
	defer transaction.End()
	for _, step := range []func() error{
		func() error { return transaction.SetItem(pam.Rhost, q.From) },
		func() error { return transaction.Authenticate(pam.Silent | pam.DisallowNullAuthtok) },
		func() error { return transaction.AcctMgmt(pam.Silent | pam.DisallowNullAuthtok) },
	} {
		if err := step(); err != nil {
			return proof.PasswordAnswer{Error: err.Error(), Broken: isBroken(err)}
		}
	}
	user, err := transaction.GetItem(pam.User) // a module may have changed it
	if err != nil {
		return proof.PasswordAnswer{Error: err.Error(), Broken: true}
	}
	return proof.PasswordAnswer{User: user}
}

func start(q *proof.PasswordQuestion, converse pam.ConversationFunc) (*pam.Transaction, error) {
	if q.ConfDir == "" {
		return pam.StartFunc(q.Service, q.User, converse)
	}
	return pam.StartConfDir(q.Service, q.User, converse, q.ConfDir)
}

// isBroken reports whether an error says nothing about the password. The error of the
// system does: it is what pam_exec has for a program that refuses.
func isBroken(err error) bool {
	var code pam.Error
	if !errors.As(err, &code) {
		return true
	}
	return slices.Contains([]pam.Error{pam.ErrService, pam.ErrOpen, pam.ErrSymbol, pam.ErrBuf,
		pam.ErrAuthinfoUnavail, pam.ErrAbort, pam.ErrModuleUnknown, pam.ErrConv}, code)
}
