"""Pages turned into text: replies in Markdown, HTML and LaTeX read into blocks, matched and measured."""
