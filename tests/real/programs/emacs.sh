# packages: emacs-nox
# version: emacs --version | sed -n '1s/.* //p'
# Its heap is dumped and mapped again; it has a collector that reads stacks.
emacs -Q --batch --eval '(progn (dotimes (i 300000) (puthash i (make-string 20 (+ 65 (% i 26))) (or (bound-and-true-p h) (setq h (make-hash-table)))))
	(garbage-collect) (message "%d %s" (hash-table-count h) (gethash 777 h))
	(with-temp-buffer (dotimes (i 20000) (insert (format "(line %d)\n" i))) (emacs-lisp-mode) (indent-region (point-min) (min (point-max) 20000))
	(message "%d %s" (buffer-size) (secure-hash (quote sha256) (buffer-string)))))' 2>&1
