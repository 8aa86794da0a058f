"""A cache by hand, of lists."""


class Router:
    def __init__(self):
        self.cache = {}

    def route(self, path):
        if path not in self.cache:
            self.cache[path] = path.split("/")  # culprit
        return self.cache[path]


router = Router()
number = 0
while True:
    router.route(f"{number}/aaaa{number}/bbbb{number}/cccc{number}/dddd{number}/eeee{number}")
    number += 1
