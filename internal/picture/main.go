package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/holdfast-dev/holdfast/report"
)

func main() {
	out := flag.String("out", "docs/img/plan-comment.png", "file for the picture")
	all := flag.String("comments", "", "folder for the pictures of docs/comments.md, instead of the other one")
	comment := flag.String("comment", "internal/picture/testdata/drawn.golden.md", "file for the comment that is drawn, which a test compares")
	page := flag.String("page", "", "file for the page that is drawn; empty keeps none")
	chromium := flag.String("chromium", "", "Chromium; empty looks for it on PATH")
	flag.Parse()
	draw := func() error { return run(*out, *comment, *page, *chromium) }
	if *all != "" {
		draw = func() error { return runAll(*all, "internal/picture/testdata", *chromium) }
	}
	if err := draw(); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(out, drawn, keep, chromium string) error {
	comment := report.Comment(example())
	page, err := pageOf(comment, "light")
	if err != nil {
		return err
	}
	if keep != "" {
		if err := os.WriteFile(keep, page, 0o644); err != nil {
			return err
		}
	}
	picture, err := screenshot(page, chromium)
	if err != nil {
		return err
	}
	return errors.Join(store(out, picture), os.WriteFile(drawn, []byte(comment), 0o644))
}

// runAll draws all comments of docs/comments.md in both colours, and writes their Markdown
// to files, which a test compares.
func runAll(dir, drawn, chromium string) error {
	for _, s := range shots() {
		for _, colours := range []string{"light", "dark"} {
			page, err := pageOf(s.text, colours)
			if err != nil {
				return err
			}
			picture, err := screenshot(page, chromium)
			if err != nil {
				return err
			}
			if err := store(filepath.Join(dir, s.name+"-"+colours+".png"), picture); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(drawn, s.name+".golden.md"), []byte(s.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// store writes a picture, without the empty rows at its end.
func store(file string, picture image.Image) error {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, trim(picture)); err != nil {
		return fmt.Errorf("encode picture: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

//go:embed page.css
var style string

// alert is the first line of a box such as "> [!CAUTION]", as goldmark leaves it.
var alert = regexp.MustCompile(`<blockquote>\s*<p>\[!([A-Z])([A-Z]+)\]\s*`)

// pageOf returns a page that shows a comment roughly as GitHub does, in light or dark colours.
func pageOf(comment, colours string) ([]byte, error) {
	var body bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(comment), &body); err != nil {
		return nil, fmt.Errorf("render comment: %w", err)
	}
	boxed := alert.ReplaceAllFunc(body.Bytes(), func(box []byte) []byte {
		m := alert.FindSubmatch(box)
		rest := bytes.ToLower(m[2])
		return fmt.Appendf(nil, `<blockquote class="%s%s"><p class="title">%s%s</p><p>`, bytes.ToLower(m[1]), rest, m[1], rest)
	})
	var page bytes.Buffer
	fmt.Fprintf(&page, `<!doctype html><html lang="en" class="%s"><meta charset="utf-8"><title>Plan comment</title><style>%s</style>
<article><header><b>holdfast</b> <span class="bot">bot</span> commented 2 minutes ago</header><div class="body">%s</div></article></html>`, colours, style, boxed)
	return page.Bytes(), nil
}

const (
	width  = 900 // of a comment on GitHub, about
	height = 3200
)

func screenshot(page []byte, chromium string) (image.Image, error) {
	if chromium == "" {
		var err error
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if chromium, err = exec.LookPath(name); err == nil {
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("find Chromium: %w; on Debian: apt-get install chromium fonts-noto-color-emoji", err)
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-picture-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "shot.png")
	if err := os.WriteFile(source, page, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := []string{
		"--headless", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1.5", "--user-data-dir=" + filepath.Join(dir, "profile"),
		fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot=" + shot, "file://" + source,
	}
	if os.Getuid() == 0 { // the page is our own, and Chromium's sandbox does not start as root
		args = append(args, "--no-sandbox")
	}
	if text, err := exec.CommandContext(ctx, chromium, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", chromium, err, text)
	}
	file, err := os.Open(shot)
	if err != nil {
		return nil, fmt.Errorf("read screenshot: %w", err)
	}
	picture, err := png.Decode(file)
	return picture, errors.Join(err, file.Close())
}

// trim leaves out the rows at the bottom in which nothing is drawn, except for a
// margin.
func trim(picture image.Image) image.Image {
	bounds := picture.Bounds()
	last := bounds.Max.Y
	for last > bounds.Min.Y && blank(picture, last-1) {
		last--
	}
	const margin = 24
	trimmed := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), min(last+margin, bounds.Max.Y)-bounds.Min.Y))
	draw.Draw(trimmed, trimmed.Bounds(), picture, bounds.Min, draw.Src)
	return trimmed
}

func blank(picture image.Image, row int) bool {
	bounds := picture.Bounds()
	background := picture.At(bounds.Min.X, bounds.Max.Y-1)
	for x := bounds.Min.X; x < bounds.Max.X; x++ {
		if picture.At(x, row) != background {
			return false
		}
	}
	return true
}
