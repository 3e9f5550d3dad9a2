package edit

import (
	"bytes"
	"errors"
	"io"

	"gopkg.in/yaml.v3"
)

// separator begins a document.
const separator = "---"

// Parts are the texts of a file's documents, each with the separator before it.
func Parts(file []byte) [][]byte {
	var out [][]byte
	begin := 0
	for at, line := 0, []byte(nil); at < len(file); at += len(line) {
		line = file[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		if at > begin && isSeparator(line) {
			out = append(out, file[begin:at])
			begin = at
		}
	}
	return append(out, file[begin:])
}

func isSeparator(line []byte) bool {
	rest, is := bytes.CutPrefix(line, []byte(separator))
	return is && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// Cut is a part without the separator before it, and that.
func Cut(part []byte) (separatorLine, document []byte) {
	line, _, _ := bytes.Cut(part, []byte("\n"))
	if !isSeparator(line) {
		return nil, part
	}
	end := min(len(line)+1, len(part))
	return part[:end], part[end:]
}

// IsOne reports whether a part has no more than one document. It may have others behind a
// line "...", which go with it wherever it goes.
func IsOne(part []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(part))
	for range 2 {
		if err := decoder.Decode(new(yaml.Node)); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// Replace is a file with a document in the place of one of its parts.
func Replace(parts [][]byte, i int, document []byte) []byte {
	out := append([][]byte(nil), parts...)
	line, was := Cut(out[i])
	out[i] = append(bytes.Clone(line), endedAs(was, document)...)
	return bytes.Join(out, nil)
}

// Remove is a file without one of its parts; nil if nothing is left.
func Remove(parts [][]byte, i int) []byte {
	rest := append(append([][]byte(nil), parts[:i]...), parts[i+1:]...)
	for _, part := range rest {
		if _, document := Cut(part); len(bytes.TrimSpace(document)) > 0 {
			return bytes.Join(rest, nil)
		}
	}
	return nil
}

// Append adds a document to a file, which may be new.
func Append(file, document []byte) []byte {
	if len(bytes.TrimSpace(file)) == 0 {
		return document
	}
	text := bytes.TrimRight(bytes.Clone(file), "\r\n")
	return append(text, endedAs(file, append([]byte("\n"+separator+"\n"), document...))...)
}

// endedAs is a text with the ends of lines that another one has, if those are all alike.
func endedAs(other, text []byte) []byte {
	crlf, lf := []byte("\r\n"), []byte("\n")
	if !bytes.Contains(other, crlf) {
		return bytes.ReplaceAll(text, crlf, lf)
	} else if hasCarriageReturns(other) {
		return bytes.ReplaceAll(bytes.ReplaceAll(text, crlf, lf), lf, crlf)
	}
	return text
}

// hasCarriageReturns reports whether all lines of a text end as those of Windows do.
func hasCarriageReturns(text []byte) bool {
	n := bytes.Count(text, []byte("\r\n"))
	return n > 0 && n == bytes.Count(text, []byte("\n"))
}
