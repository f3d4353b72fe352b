"""Audits: models × instruments, each in its languages and wordings, from one file.

`plan` reads the file and checks it whole, `foresee` says what it takes and what it will show,
`audit` runs what is not there yet and counts it, `series` sets several audits in order of time, and
`ask` writes a new file from six answers. A cell of an audit is an ordinary run folder.
"""
