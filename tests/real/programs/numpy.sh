# packages: python3-numpy python3-pytest python3-hypothesis
# version: /usr/bin/python3 -c 'import numpy; print(numpy.__version__)'
# The tests of NumPy's core.
core=$(/usr/bin/python3 -c 'import numpy.core.tests as t; print(list(t.__path__)[0])')
status=0
/usr/bin/python3 -m pytest -q -rA -p no:cacheprovider -W ignore --tb=no -m 'not slow' -o addopts= "$core" >outcomes 2>&1 || status=$?
sed -n 's/ - .*//; /^\(PASSED\|FAILED\|ERROR\|XFAIL\|XPASS\)/p' outcomes | sort; echo "status $status"
